"""What to change so that a reduction can move: one piece of advice for each kind of reason.

None changes what a step computes: where the program means what it says, it stays.
"""

from collections.abc import Mapping
from types import MappingProxyType

from hlorewrite.analysis.deferral_graph.graph import Need

_KNOWN = "compute it from constants and replicated arguments alone, so that this can be seen"
ADVICE: Mapping[Need, str] = MappingProxyType({
    "not linear": "where the accumulated value is meant, do this once after the loop",
    "rival": "",
    "differs": f"where that value is equal on all devices in fact, {_KNOWN}",
    "trip count": f"where all devices run the loop equally often in fact, {_KNOWN}",
    "branch": f"where all devices take the same branch in fact, {_KNOWN}",
    "condition": "where the number of iterations is fixed in fact, write lax.scan or lax.fori_loop",
    "token": "take ordered=True from the callbacks in the loop",
    "call": "run the pass inline first",
    "mesh": "",
    "result": "where only the last sum is needed, accumulate in a lax.scan inside the step, and return it once",
    "region": "where the accumulated value is meant, do this after the loop",
    "shape": "give it a static shape",
})
NEXT_ITERATION = ("the next iteration computes with what this one changes; where gradients are meant to be "
                  "accumulated, update the parameters once, after the loop")
EXPECTED = "comm-shift{expected} moves it"
BUDGET = "allow the bytes by comm-shift{memory-budget=SIZE}"
EXACT = "leave out exact, or accumulate in integers"
EXPOSE = "run expose-collectives first"
ACROSS_CALLS = ("call the step once for all micro-batches, and accumulate in a lax.scan inside it, or keep local sums "
                "between calls with hlorewrite.optimize(partial_state=AXIS)")

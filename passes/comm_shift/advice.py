"""What to change so that a reduction can move: one piece of advice for each kind of reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hlorewrite.spmd.flow.graph import Need

ADVICE: Mapping[Need, str] = MappingProxyType({
    "not linear": "do this once after the loop, to the accumulated value",
    "rival": "",
    "differs": "make that value equal on all devices: a constant, a replicated argument, or lax.pmean of it",
    "trip count": "give the loop a bound that is equal on all devices: a constant, or lax.pmax of it",
    "branch": "decide the branch by a value that is equal on all devices, for example lax.pmax of the condition",
    "condition": "run a fixed number of iterations, by lax.scan or lax.fori_loop",
    "token": "take ordered=True from the callbacks in the loop",
    "call": "run the pass inline first",
    "mesh": "",
    "result": "accumulate in a lax.scan inside the step, and return the sum once",
    "region": "do this after the loop",
    "shape": "give it a static shape",
})
NEXT_ITERATION = "update the parameters once, after the loop: the next iteration computes with what this one changes"
EXPECTED = "comm-shift{expected} moves it"
BUDGET = "allow the bytes by comm-shift{memory-budget=SIZE}"
EXACT = "leave out exact, or accumulate in integers"
EXPOSE = "run expose-collectives first"
ACROSS_CALLS = ("call the step once for all micro-batches, and accumulate in a lax.scan inside it, or keep local sums "
                "between calls with hlorewrite.optimize(partial_state=AXIS)")

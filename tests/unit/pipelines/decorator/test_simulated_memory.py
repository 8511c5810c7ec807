"""The memory that the simulator says a step takes, next to the arrays that the driver holds on CPU devices."""

from __future__ import annotations

from collections import defaultdict

import jax
import numpy as np
import pytest
from pipeline_models import gpt, t5, unet
from pipeline_steps import split

from hlorewrite.pipelines.actions.fit import schedule_for
from hlorewrite.pipelines.mpmd.program import FragmentCall, Transfer, read_program
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.simulate.program import FragmentTime, ProgramCost, simulate_program

FOUR = "(2),(2),(2),(2)"
MODELS = {"gpt": (gpt(4, 16, 4, 8, 8), (1, 3, 4)), "unet": (unet(2, 4, 4, 8, 8), (1, 2, 3)),
          "t5": (t5(2, 16, 4, 8, 8), (1, 2, 3))}


def live_peaks(driver: PipelineDriver, arguments) -> list[float]:
    """The most bytes of arrays that a device of each mesh holds, of a walk that waits after each action."""
    slots = driver.filled(arguments)
    names = list(driver.program.meshes)
    peak = dict.fromkeys(names, 0.0)
    for step in driver.instructions:
        made = step.function(*[slots[slot] for slot in step.reads])
        jax.block_until_ready([each for each in made if each is not None])
        for slot, value in zip(step.writes, made, strict=False):
            slots[slot] = value
        held: dict[str, dict[int, int]] = defaultdict(dict)
        kept = zip(driver.order.arguments, arguments, strict=True)  # by the caller, unless they are deleted
        for slot, value in (*enumerate(slots), *kept):
            mesh = driver.program.types[driver.order.values[slot]].mesh
            if isinstance(value, jax.Array) and not value.is_deleted() and slot not in driver.order.indices:
                data = value.addressable_shards[0].data
                held[mesh][data.unsafe_buffer_pointer()] = data.nbytes
        for name in names:
            peak[name] = max(peak[name], float(sum(held[name].values())))
        for slot in step.drops:
            slots[slot] = None
    return [peak[name] for name in names]


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "eager-1f1b", "zb-h1"])
@pytest.mark.parametrize("model", list(MODELS))
def test_simulated_peaks_are_what_the_driver_holds(model, schedule):
    made, cuts = MODELS[model]
    args = made.init()
    module = split(made.step(cuts), args, FOUR, schedule)
    driver = PipelineDriver(module, schedule=schedule)
    live = live_peaks(driver, driver.place([np.asarray(each) for each in jax.tree.leaves(args)]))
    program = read_program(module)
    cost = ProgramCost({step.callee: FragmentTime(1.0 if step.task == "F" else 2.0) for step in program.steps
                        if isinstance(step, FragmentCall)},
                       {place: 0.1 for place, step in enumerate(program.steps) if isinstance(step, Transfer)})
    wanted = schedule_for(program, schedule)
    assert wanted is not None
    simulated = simulate_program(program, wanted, cost).peak_bytes
    ratios = [said / held for said, held in zip(simulated, live, strict=True)]
    assert min(ratios) >= 0.99 and max(ratios) <= 1.12

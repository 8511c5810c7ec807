"""The model of kernels on StableHLO against the schedules that XLA makes for described GPUs."""

from __future__ import annotations

import pytest
from predictions.kernel_model import LOOP_BOUND, PROGRAM_BOUND, loop_predictions, program_predictions

from hlorewrite.errors import InputError


def test_programs_and_loops_take_as_long_as_their_schedules() -> None:
    """Programs of one op or a few within a factor of 2, loops of train steps within 1.4."""
    try:
        programs, loops = list(program_predictions()), list(loop_predictions())
    except InputError:
        pytest.skip("compiling for described GPUs needs jax-cuda13-plugin: pip install 'hlorewrite[aot]'")
    assert len(programs) >= 40 and len(loops) >= 10
    assert not [(each.name, each.what, each.ratio) for rows, bound in ((programs, PROGRAM_BOUND), (loops, LOOP_BOUND))
                for each in rows if not each.within(bound)]

"""Train steps of ``examples/`` and ``bench/`` at sizes that lower in a second, for programs that go over all of them.

A step is lowered for devices that are only described, except those of ``examples/auto_gpt.py``, which need eight CPU
devices (``JAX_NUM_CPU_DEVICES=8``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import auto_gpt
import collective_cases
import comm_shift
import comm_shift_cases
import fsdp_example
import fsdp_step
import gpt
import large_model_steps
import megatron_steps
import scaling_programs
import sharded_update_step
import timeline_steps

Lower = Callable[[], "str | bytes"]
"""Lowers a step: MLIR text, a serialized module or a serialized ``jax.export``."""
_TINY = gpt.SIZES["tiny"]
_LLAMA = large_model_steps.LlamaStep(layers=2, width=64, hidden=128, heads=8, vocab=256, length=32, micro_batches=4)
_MEGATRON = megatron_steps.MegatronModel(layers=2, width=64, rows=4, length=32, vocab=128)


def lowered_steps() -> dict[str, Lower]:
    """Name of the script and the step -> what lowers it.

    Example:
      >>> "gpt tiny" in lowered_steps()
      True
    """
    return {
        "gpt tiny": functools.partial(gpt.export_step, _TINY),
        "gpt small": functools.partial(gpt.export_step, gpt.SIZES["small"], platform="cuda"),
        "fsdp_step": functools.partial(fsdp_step.exported_fsdp_step, _TINY, 8),
        "megatron scanned": functools.partial(megatron_steps.exported, _MEGATRON),
        "llama fsdp": functools.partial(large_model_steps.exported, _LLAMA),
        **{f"auto_gpt {layout}": functools.partial(_auto_gpt, layout) for layout in auto_gpt.LAYOUTS},
        **{f"fsdp_example {name}": functools.partial(fsdp_example.exported, name) for name in ("A", "B")},
        **{f"timeline {step.name}": functools.partial(timeline_steps.exported_step, step, _TINY, 8)
           for step in timeline_steps.STEPS},
        **{f"sharded update {step.name}": functools.partial(step.exported, 64) for step in sharded_update_step.STEPS},
        **{f"accumulation {case.name}": functools.partial(_accumulation, case) for case in comm_shift_cases.CASES},
        **{f"collective {case.name}": functools.partial(case.text, 8, case.rows) for case in collective_cases.CASES},
        **{f"family {family.name}": functools.partial(family.text, 120) for family in scaling_programs.FAMILIES},
    }


def _auto_gpt(layout: str) -> str:
    mesh = auto_gpt.make_mesh(layout)
    return auto_gpt.make_step(_TINY, mesh).lower(*auto_gpt.arguments(_TINY, mesh)).as_text()


def _accumulation(case: comm_shift_cases.AccumulationCase) -> str:
    return comm_shift.exported(case, 64).text()

"""Pipeline schedules: which mesh runs which stage on which micro-batch, in what order.
    schedule = make_schedule("eager-1f1b", meshes=4, microbatches=8)
    for task in schedule.orders[0]: ...            # what mesh 0 runs
    for step in instructions(schedule)[0]: ...     # the same with its sends and receives

:func:`check` refuses what cannot run; :mod:`hlorewrite.pipelines.simulate` says how long it takes.
"""

from hlorewrite.pipelines.schedules.check import check, earliest, live, peak_live, ticks
from hlorewrite.pipelines.schedules.make import SCHEDULES, custom_schedule, make_schedule
from hlorewrite.pipelines.schedules.published import (
           dualpipe_v,
           eager_1f1b,
           gpipe,
           interleaved_1f1b,
           one_f_one_b,
           zb_h1,
           zb_h2,
)
from hlorewrite.pipelines.schedules.schedule import KINDS, ROW, Schedule, Task
from hlorewrite.pipelines.schedules.transfers import ScheduleInstruction, check_transfers, instructions, peers, sequence

__all__ = [
           "KINDS",
           "ROW",
           "SCHEDULES",
           "Schedule",
           "ScheduleInstruction",
           "Task",
           "check",
           "check_transfers",
           "custom_schedule",
           "dualpipe_v",
           "eager_1f1b",
           "earliest",
           "gpipe",
           "instructions",
           "interleaved_1f1b",
           "live",
           "make_schedule",
           "one_f_one_b",
           "peak_live",
           "peers",
           "sequence",
           "ticks",
           "zb_h1",
           "zb_h2",
]

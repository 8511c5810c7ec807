# ruff: noqa: F403 (what type checkers see of the table below)
"""Modules in and out, the view of their ops, and the one place that edits them.

Other rooms import from here; a file of this room is loaded when a name of it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.ir.async_pairs import *
    from hlorewrite.ir.binding import *
    from hlorewrite.ir.collectives import *
    from hlorewrite.ir.context import *
    from hlorewrite.ir.edit import *
    from hlorewrite.ir.effects import *
    from hlorewrite.ir.inline import *
    from hlorewrite.ir.load import *
    from hlorewrite.ir.location import *
    from hlorewrite.ir.module import *
    from hlorewrite.ir.regions import *
    from hlorewrite.ir.save import *
    from hlorewrite.ir.types import *
    from hlorewrite.ir.user_index import *
    from hlorewrite.ir.view import *

_NAMES = {
    "async_pairs": "communicates_otherwise has_async_pairs run_at_once started_ops unread_communication",
    "binding": "ir op_key passmanager sdy stablehlo",
    "collectives": "ALL_GATHER ALL_REDUCE ALL_TO_ALL BY_KIND BY_OP CHANNEL COLLECTIVES COLLECTIVE_BROADCAST "
                   "COLLECTIVE_PERMUTE CollectiveOp DYNAMIC_ROOT GROUP_ATTRIBUTES RAGGED_ALL_TO_ALL REDUCE_SCATTER "
                   "REDUCING REPLICA_GROUPS SOURCE_TARGET_PAIRS SPLIT_COUNT TIMED_KINDS UNIFORM_AFTER WITH_GLOBAL_IDS "
                   "WITH_REPLICA_GROUPS kind_of timed_kind wire_share",
    "context": "Diagnostic captured_diagnostics first_error new_context",
    "edit": "Editor channel_number remap renumbered",
    "effects": "EFFECTS Effects MAY_HAVE_EFFECTS does_more_than_compute has_side_effect",
    "inline": "contains_any dissolve_calls erase_dead_functions inline_calls is_private",
    "load": "detect parse read_bytes",
    "location": "UNKNOWN argument_path line_of_text op_name shown_path source_line",
    "module": "Format Module",
    "regions": "BARRIER BRANCHES CALL FUNCTION Loop MANUAL WHILE around called_functions decision region_op returned",
    "save": "emit",
    "types": "element_bytes element_count element_type holds_number integer_range is_floating is_number "
             "is_static_tensor largest_float tensor_bytes tensor_type with_dimension",
    "user_index": "UserIndex",
    "view": "View ancestors block_ops called_function callee_name defining_op makers_of nested_ops owner_op readable "
            "symbol_name terminator users",
}
_HOMES = {name: file for file, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found

"""The table of collectives: complete, true of the installed jaxlib, and the only place that writes the names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from hlorewrite.checks.reference.program import execute
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.ir import collectives as table
from hlorewrite.ir.collectives import TABLE, CollectiveOp
from hlorewrite.ir.load import parse
from hlorewrite.passes.all_reduce_fusion.all_reduce_fusion import Kind
from hlorewrite.passes.all_reduce_fusion.members import FUSIBLE
from hlorewrite.rules.dialects import op_names, signature

ROOT = Path(__file__).resolve().parents[3]
TABLE_FILE = "hlorewrite/ir/collectives.py"
OF_0_12 = (table.COLLECTIVE_REDUCE,)
"""Rows whose ops older releases of jaxlib lack."""
IN_DIALECT = [row for row in TABLE if row.op and (row not in OF_0_12 or row.op in op_names("stablehlo"))]
NOT_COLLECTIVE = {
    "stablehlo.send": "one side of a transfer, ordered by tokens; its peer may be another program or the host",
    "stablehlo.recv": "the other side of a send",
}
"""Ops with a channel or groups that are not in the table, with the reason."""

LISTS_OF_ROWS = {
    "hlorewrite/audit/findings.py": "the kinds that XLA merges, each with its own threshold; what a finding is "
                                    "about: sums leave loops, gathers are hoisted",
    "hlorewrite/audit/profile.py": "the names of NCCL's kernels, one for each kind or for several",
    "hlorewrite/audit/resharding.py": "what XLA's partitioner writes to reshard",
    "hlorewrite/hlo/plain_hlo.py": "what XLA's starts return, and the kinds that StableHLO writes with one operand",
    "hlorewrite/hlo/published_flags.py": "the kinds that XLA has a flag of a threshold for",
    "hlorewrite/cost/collectives/calibrate.py": "the binaries of nccl-tests, one for each timed kind",
    "hlorewrite/cost/collectives/models.py": "how many steps a ring between racks takes for each kind; the kinds whose "
                                             "ramp was measured in both directions: a fact of the model",
    "hlorewrite/cost/traffic.py": "what sequence parallelism runs in place of an all-reduce",
    "hlorewrite/checks/reference/sequentialize/collectives.py": "what executes each op",
    "hlorewrite/checks/reference/sequentialize/grid.py": "the oracle reads groups independently of spmd/groups.py",
    "hlorewrite/ir/async_pairs.py": "the dimensions in the configuration of a custom call that starts one",
    "passes/all_reduce_fusion/members.py": "the kinds that the pass can fuse",
    "passes/comm_shift/comm_shift.py": "the ops that the pass moves",
    "passes/rotate_collectives/rotate_collectives.py": "what can run an iteration earlier",
}
"""Files that list several rows by name, with the reason."""


INDEPENDENT = ("hlorewrite/checks/prove/", "hlorewrite/checks/translation_validation/",
               "hlorewrite/checks/value_graph/")
"""What checks facts and rewrites writes the meaning of each op out anew, and shares no table with them."""


@cache
def sources() -> list[tuple[str, list[ast.AST]]]:
    """(path, nodes of interest) of every file of the package, the passes and the patterns but the table itself."""
    return [(name, [node for node in ast.walk(tree) if isinstance(node, _OF_INTEREST)]) for name, tree in trees()]


_OF_INTEREST = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript, ast.Constant)


def trees() -> Iterator[tuple[str, ast.Module]]:
    """(path, tree) of the same files."""
    for folder in ("hlorewrite", "passes", "patterns"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name != TABLE_FILE and not name.startswith(("hlorewrite/passes/", "hlorewrite/patterns/")):
                yield name, ast.parse(path.read_text(encoding="utf-8"), name)


def elements(node: ast.AST) -> list[ast.expr | None]:
    """What stands in a tuple, list, set or dict, keys and values."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return list(node.elts)
    return [*node.keys, *node.values] if isinstance(node, ast.Dict) else []


def static_types(nodes: Iterable[ast.AST]) -> set[int]:
    """The lines of ``Literal[...]``: a static type has to write its members out."""
    return {line for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
            and node.value.id == "Literal" for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def written_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, set[str]]]:
    """(line, names) of each literal that lists names of collectives as text."""
    names = {name for row in TABLE for name in (row.op, row.op.removeprefix("stablehlo."), row.kind) if name}
    types = static_types(nodes)
    for node in nodes:
        listed_names = {each.value for each in elements(node) if isinstance(each, ast.Constant)
                        and isinstance(each.value, str) and each.value in names}
        if listed_names and node.lineno not in types:  # pyright: ignore[reportAttributeAccessIssue]
            yield node.lineno, listed_names  # pyright: ignore[reportAttributeAccessIssue]


def dotted(node: ast.AST) -> list[str]:
    """The names of an expression such as ``collectives.ALL_REDUCE.op``, last first; none for other expressions."""
    names = list[str]()
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*names, node.id] if isinstance(node, ast.Name) else []


def named_rows(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, set[str]]]:
    """(line, rows) of each literal that lists rows of the table, or fields of them."""
    rows = {name for name, value in vars(table).items() if isinstance(value, CollectiveOp)}
    for node in nodes:
        names = {name for each in elements(node) for name in dotted(each) if name in rows}
        if names:
            yield node.lineno, names  # pyright: ignore[reportAttributeAccessIssue]


def test_every_op_of_the_dialect_that_communicates_is_in_the_table() -> None:
    marks = {*table.GROUP_ATTRIBUTES, table.CHANNEL}
    communicating = {name for name in op_names("stablehlo")
                     if (declared := signature(name)) is not None and marks & set(declared.attributes)}
    in_table = {row.op for row in IN_DIALECT}
    assert communicating - in_table == set(NOT_COLLECTIVE) & set(op_names("stablehlo")), (
        "add a row to TABLE in hlorewrite/ir/collectives.py, or the op with a reason to NOT_COLLECTIVE")
    assert in_table <= communicating


@pytest.mark.parametrize("row", IN_DIALECT, ids=lambda row: row.op)
def test_row_agrees_with_the_dialect(row: CollectiveOp) -> None:
    declared = signature(row.op)
    assert declared is not None
    assert set(row.attributes) == set(declared.attributes) - {table.DYNAMIC_ROOT}
    assert row.reduces == (bool(declared.regions) or row is table.CROSS_REPLICA_SUM)  # which always adds


def test_rows_are_distinct_and_refer_to_rows() -> None:
    assert len({row.op for row in IN_DIALECT}) == len(IN_DIALECT)
    assert len({row.kind for row in TABLE if not row.deprecated}) == sum(not row.deprecated for row in TABLE)
    assert {row.timed_as for row in TABLE if row.timed_as} <= set(table.TIMED_KINDS)
    assert {row for row in vars(table).values() if isinstance(row, CollectiveOp)} == set(TABLE)


@pytest.mark.parametrize("row, kind", [(table.CROSS_REPLICA_SUM, "all-reduce"),
                                       (table.COLLECTIVE_REDUCE, "collective-reduce")])
def test_what_passes_leave_alone_is_a_collective_and_nothing_else(row: CollectiveOp, kind: str) -> None:
    op = row.op
    assert op in table.COLLECTIVES and table.kind_of(op) == kind
    for names in (table.REDUCING, table.WITH_REPLICA_GROUPS, table.WITH_GLOBAL_IDS, table.UNIFORM_AFTER):
        assert op not in names


@pytest.mark.parametrize("kind", table.HLO_KINDS)
def test_kind_is_read_in_hlo_text(kind: str) -> None:
    assert collective_kind(kind) == collective_kind(f"{kind}-start") == kind
    assert collective_kind(f"{kind}-done") is None


def executed(row: CollectiveOp) -> list[np.ndarray]:
    """The results of two devices that give different values."""
    attributes = [f"{row.groups} = dense<{[[0, 1]] if row.groups == table.REPLICA_GROUPS else [[0, 1], [1, 0]]}> : "
                  f"tensor<{1 if row.groups == table.REPLICA_GROUPS else 2}x2xi64>"]
    attributes += [f"{name} = {2 if name == 'split_count' else 0} : i64" for name in row.dimensions]
    body = ("({^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> "
            "stablehlo.return %s : tensor<f32>})" if row.reduces else "")
    length = {"result": 8, "operand": 2, "": 4}[row.larger]
    module = parse(f'func.func @f(%x: tensor<4xf32>) -> tensor<{length}xf32> {{ %y = "{row.op}"(%x) '
                   f'<{{{", ".join(attributes)}}}> {body} : (tensor<4xf32>) -> tensor<{length}xf32> '
                   f'return %y : tensor<{length}xf32> }}')
    return [outputs[0] for outputs in execute(module, [GIVEN[:1], GIVEN[1:]])]


GIVEN = [np.arange(4, dtype=np.float32), np.arange(10, 14, dtype=np.float32)]


@pytest.mark.parametrize("row", [row for row in IN_DIALECT if not (row.deprecated or row.to_root)],
                         ids=lambda row: row.op)
def test_row_agrees_with_execution(row: CollectiveOp) -> None:
    first, second = executed(row)
    assert row.uniform == np.array_equal(first, second)
    assert row.copies == all(any(np.array_equal(result, given) for given in GIVEN) for result in (first, second))


def test_names_are_written_in_the_table_only() -> None:
    lists = [f"{name}:{line}: {', '.join(sorted(ops))}" for name, nodes in sources()
             if not name.startswith(INDEPENDENT) for line, ops in written_names(nodes) if len(ops) > 1]
    assert not lists, "derive these from the rows in hlorewrite/ir/collectives.py"
    ops = {row.op for row in IN_DIALECT}
    single = [f"{name}:{node.lineno}: {node.value}" for name, nodes in sources() if not name.startswith(INDEPENDENT)
              for node in nodes if isinstance(node, ast.Constant) and node.value in ops]
    assert not single, "write ALL_REDUCE.op and so on"


def test_lists_of_rows_have_a_reason() -> None:
    listing = {name for name, nodes in sources() for _, rows in named_rows(nodes) if len(rows) > 1}
    assert listing == set(LISTS_OF_ROWS), "use a tuple of hlorewrite/ir/collectives.py, or add the file with its reason"


def test_static_type_of_fused_kinds_agrees_with_the_rows() -> None:
    assert get_args(Kind) == tuple(row.kind for row in FUSIBLE)


@pytest.mark.parametrize(("text", "count"), [
    ('KINDS = ("all-reduce", "all-gather")', 2), ('x = {"stablehlo.all_reduce": "all-reduce"}', 2),
    ('if op in {"all_reduce", "reduce_scatter"}: pass', 2), ('KINDS = ["all-reduce", "send"]', 1),
    ('Kind = Literal["all-reduce", "all-gather"]', 0)])
def test_lists_are_recognised(text: str, count: int) -> None:
    assert sum(len(names) for _, names in written_names([*ast.walk(ast.parse(text))])) == count


def test_lists_of_rows_are_recognised() -> None:
    tree = ast.parse("a = (ALL_REDUCE.op, ALL_GATHER)\nb = [ALL_REDUCE]\nc = {ALL_REDUCE.op: run, ALL_TO_ALL.op: run}\n"
                     "d = (table.ALL_REDUCE, table.ALL_TO_ALL.op)")
    assert [(line, len(rows)) for line, rows in named_rows(ast.walk(tree))] == [(1, 2), (2, 1), (3, 2), (4, 2)]

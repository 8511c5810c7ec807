"""Finds lists of op names outside ``hlorewrite/ops``, where each op has its row.

Usage: ``python tools/op_lists.py`` prints each violation and exits 1 when there is one.

A list is a tuple, list, set or dictionary literal, or a text that is split into words, with three or more different ops
of a dialect: ``("stablehlo.add", "stablehlo.negate", "stablehlo.tanh")``, or ``f"stablehlo.{name}" for name in
("add", "negate", "tanh")``. A table of handlers, ``{"stablehlo.add": _add, ...}``, is none, nor are names of single
ops, ``_ADD, _TANH = ...``. Say what kind of op they are in ``ops/table.py`` and ask for it. Files of ``EXCEPTIONS``
keep theirs, each for the reason it has there; a file that has none any more leaves the table.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("hlorewrite", "passes", "patterns")
MOST = 2
"""Ops that a literal may name."""
_OP = re.compile(r"(?:stablehlo|chlo|sdy|mhlo)\.[a-z_]+")
_DIALECT = re.compile(r"(?:stablehlo|chlo|sdy|mhlo)\.$")
_LITERALS = (ast.SetComp, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.Tuple, ast.List, ast.Set, ast.Dict)
_FUNCTIONS = (ast.Name, ast.Attribute, ast.Lambda)
_WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)?")

_BELOW = "it stands below ops, which imports it"
_TIME = "what takes time of its own, or is a kernel: belongs to the one model of time"
_REGIONS = "ops with regions, of which each is followed in its own way"
_XLA = "what XLA does with these ops, and not what they mean"
_SENTENCES = "each op with a sentence or a spelling of its own"
_TYPES = "ops of which the interpreter needs an operand in another type"
_SEMANTICS = "the semantics that proofs are made of"
_EQUATIONS = "ops for which the file has an equation"
_AGAIN = "what is cheap enough to be made again: still to become a class"
_LINEAR = "ops that a sum moves past here: still to be asked of the linearity facts"
_REWRITTEN = "what the pass itself can write for a part of a value"
_NARROW = "narrower than the class, since a wider one would change what is found"

EXCEPTIONS: dict[str, str] = {
    "hlorewrite/ir/effects.py": _BELOW,
    "hlorewrite/ir/inline.py": _BELOW,
    "hlorewrite/ir/view.py": _BELOW,
    "hlorewrite/cost/kernels/clock.py": _TIME,
    "hlorewrite/jaxbridge/hook/patch.py": _TIME,
    "passes/comm_shift/deferral.py": _TIME,
    "hlorewrite/pipelines/passes/split_stages/auto/cut_graph.py": _TIME,
    "hlorewrite/pipelines/passes/split_stages/stage_assignment.py": _TIME,
    "hlorewrite/checks/reference/control.py": _REGIONS,
    "hlorewrite/passmanager/trace/snapshot.py": _REGIONS,
    "hlorewrite/checks/translation_validation/program/sorts.py": _REGIONS,
    "hlorewrite/hlo/xla_hazards.py": _XLA,
    "hlorewrite/hlo/xla_warnings.py": _XLA,
    "hlorewrite/jaxbridge/choose/miscompile_policy.py": _XLA,
    "hlorewrite/jaxbridge/xla/partition.py": _XLA,
    "hlorewrite/analysis/dependence.py": _XLA,
    "hlorewrite/cli/lint.py": _SENTENCES,
    "hlorewrite/analysis/varying_ops.py": _SENTENCES,
    "hlorewrite/rules/facts.py": _SENTENCES,
    "hlorewrite/checks/reference/program.py": _TYPES,
    "hlorewrite/checks/prove/proof_obligation.py": _SEMANTICS,
    "hlorewrite/checks/value_graph/communication_rules.py": _EQUATIONS,
    "hlorewrite/checks/value_graph/views/forms.py": _EQUATIONS,
    "hlorewrite/checks/value_graph/views/moves.py": _EQUATIONS,
    "hlorewrite/checks/value_graph/views/rows.py": _EQUATIONS,
    "hlorewrite/checks/value_graph/uniform.py": _EQUATIONS,
    "hlorewrite/checks/translation_validation/program/linear.py": _EQUATIONS,
    "hlorewrite/checks/translation_validation/program/evaluate.py": _EQUATIONS,
    "hlorewrite/checks/translation_validation/program/state.py": _EQUATIONS,
    "hlorewrite/pipelines/runtime/host_splats.py": _AGAIN,
    "hlorewrite/pipelines/mpmd/fragment_assignment.py": _AGAIN,
    "hlorewrite/pipelines/mpmd/program.py": _AGAIN,
    "passes/common/loop_copies/rematerialize_splats.py": _AGAIN,
    "hlorewrite/pipelines/passes/split_stages/graph.py": _AGAIN,
    "passes/reduce_scatter_creation.py": _LINEAR,
    "passes/comm_shift/in_place.py": _LINEAR,
    "passes/comm_shift/scatter_facts.py": _LINEAR,
    "passes/common/zero_iter_args.py": _LINEAR,
    "passes/sink_reductions/find.py": _LINEAR,
    "hlorewrite/pipelines/passes/split_stages/sums.py": _LINEAR,
    "passes/shard_update/carried.py": _REWRITTEN,
    "hlorewrite/pipelines/passes/split_stages/stacks/direct_rows.py": _REWRITTEN,
    "hlorewrite/pipelines/passes/split_stages/stacks/derived_parts.py": _REWRITTEN,
    "hlorewrite/analysis/parameter_provenance.py": _NARROW,
    "hlorewrite/analysis/per_device_constants.py": _NARROW,
}
"""File to why its lists are there. The table only shrinks."""


def op_lists(source: str) -> Iterator[tuple[int, int]]:
    """(line, number of ops) of each literal with more than ``MOST`` ops, outermost ones only.

    Example:
      >>> list(op_lists('A = ("stablehlo.add", "stablehlo.tanh", "stablehlo.sine")'))
      [(1, 3)]
      >>> list(op_lists('A = {f"stablehlo.{name}" for name in ("add", "tanh", "sine", "cosine")}'))
      [(1, 4)]
    """
    if not re.search(r"(?:stablehlo|chlo|sdy|mhlo)\.", source):
        return
    pending: list[ast.AST] = [ast.parse(source)]
    # Ends: each node of the tree is taken once.
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            continue
        count = len(_named(node))
        if count > MOST:
            yield getattr(node, "lineno", 0), count
        else:
            pending += list(ast.iter_child_nodes(node))[::-1]


def _named(node: ast.AST) -> set[str]:
    """The ops that a literal names; none for other nodes."""
    if not isinstance(node, _LITERALS):
        return set()
    if isinstance(node, (ast.SetComp, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        made = [node.key] if isinstance(node, ast.DictComp) else [node.elt]
        if any(_DIALECT.search(text) for each in made for text in _texts(each)):
            return {word for each in node.generators for text in _texts(each.iter) for word in _WORD.findall(text)}
        return set()
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        held = node.elts
    elif isinstance(node, ast.Dict) and not all(isinstance(each, _FUNCTIONS) for each in node.values):
        held = [key for key in node.keys if key is not None]
    else:
        return set()
    return {text for each in held for text in _texts(each) if _OP.fullmatch(text)}


def _texts(node: ast.AST) -> Iterator[str]:
    yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def check(root: Path, exceptions: Mapping[str, str] = EXCEPTIONS) -> list[str]:
    """One sentence for each list that has no exception, and for each exception without a list.

    Args:
      root: the folder above the package.
      exceptions: file below it to the reason.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for folder in FOLDERS:
        for base, folders, files in os.walk(root / folder):
            folders.sort()
            for file in sorted(files):
                path = Path(base) / file
                name = path.relative_to(root).as_posix()
                if file.endswith(".py") and not name.startswith("hlorewrite/ops/"):
                    lists = list(op_lists(path.read_text(encoding="utf-8")))
                    found |= {name: lists} if lists else {}
    sentences = [f"{name}:{line}: {count} ops in one literal; make them a row or a query of hlorewrite/ops/table.py"
                 for name, lists in found.items() if name not in exceptions for line, count in lists]
    return sentences + [f"{name} has no list of ops any more: take it out of EXCEPTIONS in tools/op_lists.py"
                        for name in exceptions if name not in found]


if __name__ == "__main__":
    gc.disable()  # a tree has no circles
    violations = check(ROOT)
    print("\n".join(violations) or "what ops are is said in hlorewrite/ops")
    sys.exit(1 if violations else 0)

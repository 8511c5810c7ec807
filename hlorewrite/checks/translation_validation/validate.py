"""Decides whether a rewritten module computes what its original does, from the two modules alone.

Translation validation (Pnueli, Siegel and Singerman, TACAS 1998) by a shared normal form, as for LLVM by Tristan,
Govereau and Morrisett (PLDI 2011): both programs are evaluated symbolically to one graph, and their results compared.
"""

import gc
import sys
from collections.abc import Sequence

from hlorewrite.analysis.mesh import meshes
from hlorewrite.checks.translation_validation.congruence import check_partition, refine_partition
from hlorewrite.checks.translation_validation.difference import endless, first_difference, hanging
from hlorewrite.checks.translation_validation.program.evaluate import evaluate
from hlorewrite.checks.translation_validation.program.joined_halves import JOINS, with_joined_halves
from hlorewrite.checks.translation_validation.program.last_iteration import set_apart
from hlorewrite.checks.translation_validation.program.rotated_streams import take_apart
from hlorewrite.checks.translation_validation.program.state import ProgramState, Strategy, share_forms
from hlorewrite.checks.translation_validation.value_graph.graph import Graph
from hlorewrite.checks.translation_validation.value_graph.groups import ProcessSpace
from hlorewrite.checks.translation_validation.value_graph.index_maps import IndexMaps
from hlorewrite.checks.translation_validation.value_graph.per_process_constants import ProcessConstants
from hlorewrite.checks.translation_validation.value_graph.uniform import SameOnMembers
from hlorewrite.checks.translation_validation.verdict import NotRead, Proved, Unknown
from hlorewrite.ir import Module, View, ir, is_private
from hlorewrite.rules.library import shipped_facts

STRATEGIES = (Strategy("defer reductions", quick=True), Strategy("defer reductions, evaluate loops again"),
              Strategy("evaluate reductions of equal values", fold=True),
              Strategy("sum in wider types", widen=True),
              Strategy("track single elements", fold=True, elements=True),
              Strategy("evaluate reductions in place", fold=True, elements=True, eager=True),
              Strategy("defer scattered sums as whole sums", scatter=True),
              Strategy("defer scattered sums as whole sums in wider types", scatter=True, widen=True),
              Strategy("defer the last factor of a product", last_factor=True),
              Strategy("merge streams of equal ops", streams=True),
              Strategy("join halves", halves=True))

VIEW_STRATEGIES = (Strategy("moves as views", views=True), Strategy(
    "moves as views, evaluate reductions", views=True, fold=True, eager=True))
ROUNDED_STRATEGIES = (Strategy("moves as views, round constants", views=True, rounded=True),)
"""Normal forms of XLA's simplifiers; `equivalence.py` tries them after those above."""

_DEEPEST = 20_000
FAILED = "the validator cannot read this program"


def validate(original: Module, result: Module) -> Proved | Unknown:
    """Whether a module computes on every device what another one does.

    Sums of floats may be taken in another order and in a wider type, not in a narrower one; values are taken to be
    finite.

    Args:
      original: the module before; it is taken to end, and not to hang.
      result: the module after.

    Returns:
      Proved, or Unknown with the first reason.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @main(%x: tensor<f32>) -> tensor<f32> {"
      ...         "%y = stablehlo.add %x, %x : tensor<f32>  return %y : tensor<f32> }")
      >>> print(validate(parse(text), parse(text)))
      proved
      >>> print(validate(parse(text), parse(text.replace("add", "multiply"))))
      unknown: output 0 is stablehlo.multiply where the original has stablehlo.add at <stdin>:1:55
    """
    return validate_by(original, result, STRATEGIES)


def validate_by(original: Module, result: Module, strategies: Sequence[Strategy]) -> Proved | Unknown:
    """The same under some normal forms, one after the other until one proves it."""
    collecting, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()  # the graph is large and holds no circles; looking for some takes a third of the time
    sys.setrecursionlimit(max(limit, _DEEPEST))  # a view goes down an expression op by op
    try:
        return _validated(View(original), View(result), strategies)
    except NotRead as error:
        return Unknown(error.reason, error.location)
    except Exception as error:  # whatever it is, nothing is proved, and the run goes on
        return Unknown(f"{FAILED} ({type(error).__name__}: {str(error)[:100]})")
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()


def _validated(original: View, result: View, strategies: Sequence[Strategy]) -> Proved | Unknown:
    """The answer of the first normal form that proves it, or else of the first one."""
    problem = face_difference(original, result)
    if problem is not None:
        return problem
    nodes, first, last_apart = 0, None, set_apart(original, result)
    divides = any(len(original.ops(name)) != len(result.ops(name)) for name in JOINS)
    for strategy in strategies:
        if strategy.streams and not last_apart:
            continue  # where no loop runs once less, none is rotated
        if strategy.halves and not divides:
            continue
        answer = _under(strategy, original, result, last_apart)
        if isinstance(answer, Proved):
            return Proved(answer.strategy, nodes + answer.nodes)
        first = first or answer
    assert first is not None
    return first


def _under(strategy: Strategy, original: View, result: View, last_apart: frozenset[int]) -> Proved | Unknown:
    """The answer for one normal form."""
    nodes = 0
    for name in entries(original):
        answer = _function(strategy, original, result, name, last_apart)
        if isinstance(answer, Unknown):
            return answer
        nodes += answer.nodes
    return Proved(strategy.name, nodes)


def _function(strategy: Strategy, original: View, result: View, name: str, last_apart: frozenset[int]
              ) -> Proved | Unknown:
    graph, space, facts = Graph(), ProcessSpace(original), shipped_facts()
    tables = ProcessConstants(graph, space.size, scalars=strategy.halves)
    same = SameOnMembers(graph, tables)
    picks = IndexMaps(graph, tables)
    programs = [ProgramState(graph, space, original, facts, strategy=strategy, tables=tables, same=same, picks=picks,
                             original=True, last_apart=last_apart),
                ProgramState(graph, space, result, facts, strategy=strategy, tables=tables, same=same, picks=picks,
                             original=False)]
    if strategy.views:
        share_forms(*programs)
    outputs = [[*evaluate(program, _entry(program.view, name)), program.effects] for program in programs]
    if strategy.halves:
        outputs = with_joined_halves(programs, outputs)
    if strategy.streams:
        take_apart(graph, [path[-1][1] for program in programs for path in program.loops])
    graph.close()
    pairs = list(zip(*outputs, strict=True))
    roots = [node for pair in pairs for node in pair]
    roots += [node for program in programs for each in program.executions for _, node in each.control]
    roots += [node for program in programs for path in program.loops for _, node in path]
    colors = refine_partition(graph, roots, pairs)
    different = next((n for n, (a, b) in enumerate(pairs) if colors[a] != colors[b]), None)
    if different is not None:
        return first_difference(programs[0], programs[1], colors, pairs[different],
                                f"output {different}" if different < len(pairs) - 1 else "the order of effects")
    if not check_partition(graph, colors, pairs):
        return Unknown("the comparison does not pass its check")
    before, after = programs
    return endless(before, after, colors) or hanging(before, after, colors) or Proved(strategy.name, len(graph.labels))


def _entry(view: View, name: str) -> ir.Operation:
    return view.functions[name]


# ---- what has to be the same about two modules before anything is compared: how they are called, and on what devices


_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")


def entries(view: View) -> list[str]:
    """The functions that are called from outside: the public ones."""
    return [name for name, function in view.functions.items()
            if not is_private(function) and len(function.regions[0].blocks)]


def face_difference(original: View, result: View) -> Unknown | None:
    """Why two modules cannot be compared; None when they can."""
    for view in (original, result):
        odd = next((op.operation for op in view.module.mlir.body.operations
                    if op.operation.name not in ("func.func", "sdy.mesh")), None)
        if odd is not None:
            return Unknown(f"the module contains {odd.name}", view.source(odd))
    for name in _COUNTS:
        if _attribute(original.module.operation, name) != _attribute(result.module.operation, name):
            return Unknown(f"{name} differs")
    if meshes(original) != meshes(result):
        return Unknown("the meshes differ")
    if entries(original) != entries(result):
        return Unknown("other functions are public")
    for name in entries(original):
        function, other = original.functions[name], result.functions[name]
        if len(function.regions[0].blocks) != 1 or len(other.regions[0].blocks) != 1:
            return Unknown(f"@{name} has several blocks", original.source(function))
        for attribute in ("function_type", "arg_attrs", "res_attrs"):
            if _attribute(function, attribute) != _attribute(other, attribute):
                return Unknown(f"@{name} is called differently", result.source(other))
    return None if entries(original) else Unknown("no function is public")


def _attribute(op: ir.Operation, name: str) -> str:
    return str(op.attributes[name]) if name in op.attributes else ""

"""Decides whether a rewritten module computes what its original does, from the two modules alone.

Translation validation (Pnueli, Siegel and Singerman, TACAS 1998) by a shared normal form, as for LLVM by Tristan,
Govereau and Morrisett (PLDI 2011): both programs are evaluated symbolically to one graph, and their results compared.
"""

import gc
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from hlorewrite.analysis.mesh import meshes
from hlorewrite.checks.translation_validation.congruence import check_partition, refine_partition
from hlorewrite.checks.translation_validation.program.evaluate import evaluate
from hlorewrite.checks.translation_validation.program.joined_halves import JOINS, with_joined_halves
from hlorewrite.checks.translation_validation.program.last_iteration import in_pairs, set_apart
from hlorewrite.checks.translation_validation.program.rotated_streams import take_apart
from hlorewrite.checks.translation_validation.program.state import CollectiveRun, ProgramState, Strategy, share_forms
from hlorewrite.checks.translation_validation.verdict import NotRead, Proved, Unknown
from hlorewrite.checks.value_graph.graph import Graph
from hlorewrite.checks.value_graph.groups import ProcessSpace, Reduction
from hlorewrite.checks.value_graph.index_maps import IndexMaps
from hlorewrite.checks.value_graph.per_process_constants import ProcessConstants
from hlorewrite.checks.value_graph.uniform import SameOnMembers
from hlorewrite.ir import Module, View, ir, is_private, op_key
from hlorewrite.ops.table import COMMUTATIVE
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
              Strategy("run iterations two at a time", pairs=True),
              Strategy("join halves", halves=True))

VIEW_STRATEGIES = (Strategy("moves as views", views=True), Strategy(
    "moves as views, evaluate reductions", views=True, fold=True, eager=True))
ROUNDED_STRATEGIES = (Strategy("moves as views, round constants", views=True, rounded=True),)
"""Normal forms of XLA's simplifiers; `equivalence.py` tries them after those above."""

_DEEPEST = 20_000
FAILED = "the validator cannot read this program"


class LoopGuesses(NamedTuple):
    """Keys of the original's loops that the result seems to run in another form."""

    last_apart: frozenset[int]
    in_pairs: frozenset[int]


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
    nodes, first, guesses = 0, None, LoopGuesses(set_apart(original, result), in_pairs(original, result))
    divides = any(len(original.ops(name)) != len(result.ops(name)) for name in JOINS)
    for strategy in strategies:
        if strategy.streams and not guesses.last_apart:
            continue  # where no loop runs once less, none is rotated
        if strategy.pairs and not guesses.in_pairs:
            continue
        if strategy.halves and not divides:
            continue
        answer = _under(strategy, original, result, guesses)
        if isinstance(answer, Proved):
            return Proved(answer.strategy, nodes + answer.nodes)
        first = first or answer
    assert first is not None
    return first


def _under(strategy: Strategy, original: View, result: View, guesses: LoopGuesses) -> Proved | Unknown:
    """The answer for one normal form."""
    nodes = 0
    for name in entries(original):
        answer = _function(strategy, original, result, name, guesses)
        if isinstance(answer, Unknown):
            return answer
        nodes += answer.nodes
    return Proved(strategy.name, nodes)


def _function(strategy: Strategy, original: View, result: View, name: str, guesses: LoopGuesses) -> Proved | Unknown:
    graph, space, facts = Graph(), ProcessSpace(original), shipped_facts()
    tables = ProcessConstants(graph, space.size, scalars=strategy.halves)
    same = SameOnMembers(graph, tables)
    picks = IndexMaps(graph, tables)
    programs = [ProgramState(graph, space, original, facts, strategy=strategy, tables=tables, same=same, picks=picks,
                             original=True, last_apart=guesses.last_apart,
                             in_pairs=guesses.in_pairs if strategy.pairs else frozenset()),
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


# ---- describes where two programs differ, and whether the result may hang although the original does not


_MOST_STEPS = 10_000
_ARTICLE = re.compile("^(an?|the) ")


def first_difference(original: ProgramState, result: ProgramState, colors: Sequence[int], pair: tuple[int, int],
                     what: str) -> Unknown:
    """From a pair of nodes, follows the first operands that differ, as long as both nodes look alike."""
    graph = original.graph
    a, b = pair
    key = 0
    seen = set()
    # Ends: each round adds a pair, at most ``_MOST_STEPS``.
    while (a, b) not in seen and len(seen) < _MOST_STEPS:
        seen.add((a, b))
        key = graph.origins[b] or key
        below = _below(graph, a), _below(graph, b)
        if graph.labels[a] != graph.labels[b] or graph.types[a] != graph.types[b] or len(below[0]) != len(below[1]):
            break
        differing = [(x, y) for x, y in zip(*below, strict=True) if colors[x] != colors[y]]
        if not differing or (graph.labels[a][0] in COMMUTATIVE and len(differing) > 1):
            break
        a, b = next((each for each in differing if each not in seen), differing[0])
    key = graph.origins[b] or key
    name = _name(graph, b), _name(graph, a)
    said = f"{what} is {name[0]} where the original has {name[1]}" if name[0] != name[1] else (
        f"{what} is not the same {_ARTICLE.sub('', name[0])} as in the original")
    return Unknown(said, _source(original, result, key))


def _source(original: ProgramState, result: ProgramState, key: int) -> str:
    """The source line of the op of a key, in either program."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op_key(op) != key:
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.INTERRUPT

    for program in (result, original):
        if key and not found:
            program.view.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return result.view.source(found[0]) if found else ""


def _below(graph: Graph, node: int) -> tuple[int, ...]:
    return (*graph.args[node], graph.yields[node]) if node in graph.yields else graph.args[node]


def _name(graph: Graph, node: int) -> str:
    label = graph.labels[node]
    sort = str(label[0])
    if sort == "reduced":
        keys: tuple[tuple[Reduction, ...], ...] = label[2]  # type: ignore[assignment]
        groups = ("".join(str(each.members) for each in key) or "none" for key in keys)
        return f"a {label[1]} over {' and '.join(groups)}"
    if sort == "source":
        return f"argument {label[1][1]}" if label[1][0] == "argument" else "a part of a value"  # type: ignore[index]
    second = str(label[1]) if len(label) > 1 else ""
    return {"splat": f"the number {second}", "number": f"the number {second}", "table": "numbers by device",
            "stream": "a loop-carried value", "exit": "the result of a loop", "case": "a branch", "sum": "a sum",
            "product": "a product", "power": "a power", "view": "a rearranged value", "opaque": second,
            "pick": "a selection of elements", "effect": "an effect", "world": "an effect", "constant": "a constant",
            "fetch": "a value of another device"}.get(sort, sort)


def hanging(original: ProgramState, result: ProgramState, colors: Sequence[int]) -> Unknown | None:
    """A collective of the result that some members of its group may not reach, as far as can be seen.

    All members reach it when each predicate around it is the same on all of them. If one may differ, the original has
    to execute a collective over groups at least as wide each time all predicates up to that one hold: under these
    predicates, perhaps some further ones around the result's, and no others. A collective in a branch of a loop is not
    executed in each iteration, so it does not keep the members together in the other iterations.
    """
    reached = [(each, _path(each, colors)) for each in original.executions]
    for each in result.executions:
        doubtful = 0
        for number, (_, predicate) in enumerate(each.control, 1):
            if each.members is None or not result.same.same(predicate, each.members):
                doubtful = number
        if not doubtful:
            continue
        path = _path(each, colors)
        if not any(_as_wide(other, each) and len(held) >= doubtful and held == path[:len(held)]
                   for other, held in reached):
            return Unknown(f"some devices may reach a {each.op.name} that others skip", result.view.source(each.op))
    return None


def endless(original: ProgramState, result: ProgramState, colors: Sequence[int]) -> Unknown | None:
    """A loop of the result that the original does not have, so it is not known to end."""
    ending = {tuple((what, colors[node]) for what, node in path) for path in original.loops}
    for path in result.loops:
        if tuple((what, colors[node]) for what, node in path) not in ending:
            return Unknown("a loop of the result is not in the original, and might not end",
                           _source(original, result, original.graph.origins[path[-1][1]]))
    return None


def _as_wide(other: CollectiveRun, each: CollectiveRun) -> bool:
    if each.members is None or other.members is None:
        return other.members is each.members and other.text == each.text
    return each.members.within(other.members)


def _path(each: CollectiveRun, colors: Sequence[int]) -> Sequence[tuple[str, int]]:
    return [(what, colors[node]) for what, node in each.control]

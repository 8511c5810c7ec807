"""Checks linearity facts by execution: op(AR(a) + p) against AR(op(a)) + op(p) on four devices.

Operands that are not linear are constants or identities of the reduction, and one at a time differs between devices. If
a fact refuses such a case, it is asked again without each of its conditions, and what it then claims is executed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlorewrite.analysis.groups import groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.rule_checks.rules import ConditionResult, RuleResult
from hlorewrite.errors import CannotExecute, InputError
from hlorewrite.ir import ALL_REDUCE, Module, View, parse
from hlorewrite.rules.compile.checks import NativeFunction
from hlorewrite.rules.facts import CompiledFact, compile_fact
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression
from hlorewrite.util.tolerances import FACT_TOLERANCE

# ---- well-formed ops for checking linearity facts: their text, operand types and result type


REDUCERS = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


@dataclass(frozen=True)
class Form:
    """One way to write an op.

    Attributes:
      name: the op.
      text: the op with ``{0}``, ``{1}``... for its operands, without results.
      operands: their types.
      result: the result type.
    """

    name: str
    text: str
    operands: tuple[str, ...]
    result: str


def tensor(element: str, *shape: int) -> str:
    """A tensor type as MLIR writes it.

    Example:
      >>> tensor("f32", 2, 3)
      'tensor<2x3xf32>'
    """
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def generic(name: str, operands: Sequence[str], result: str, attributes: str = "", reducer: str = "") -> Form:
    """An op in generic form; with a reducer, its region combines two elements by that op."""
    region = ""
    if reducer:
        element = operands[0].removeprefix("tensor<").split("x")[-1].removesuffix(">")
        scalar = f"tensor<{element}>"
        region = (f" ({{{{^bb0(%x: {scalar}, %y: {scalar}): %z = stablehlo.{reducer} %x, %y : {scalar} "
                  f"stablehlo.return %z : {scalar}}}}})")
    places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    text = f'"stablehlo.{name}"({places}){region} {{{{{attributes}}}}} : ({", ".join(operands)}) -> {result}'
    return Form(f"stablehlo.{name}", text, tuple(operands), result)


_GATHER = ("dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
           "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>")
_SCATTER = ("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")
_DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
_CONVOLUTION = ("dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, "
                "feature_group_count = 1 : i64")
_TRIANGULAR = ("left_side = true, lower = true, unit_diagonal = false, "
               "transpose_a = #stablehlo<transpose NO_TRANSPOSE>")


def forms() -> list[Form]:
    """Every form there is: float, integer and truth-valued elements if the op takes them."""
    instances: list[Form] = []
    for element in ("f32", "i32", "i1", "bf16"):
        v, m, s = tensor(element, 4), tensor(element, 4, 4), tensor(element)
        instances += _elementwise(element, v) + _moving(element, v, m, s)
        instances += [generic("reduce", [m, s], v, "dimensions = array<i64: 0>", op) for op in REDUCERS.values()]
        instances += [generic("reduce_window", [v, s], tensor(element, 3), "window_dimensions = array<i64: 2>", op)
                      for op in REDUCERS.values()]
        instances += [generic("scatter", [m, tensor("i32", 2, 1), tensor(element, 2, 4)], m, _SCATTER, op)
                      for op in REDUCERS.values()]
        instances.append(generic("gather", [m, tensor("i32", 2, 1)], tensor(element, 2, 4), _GATHER))
        instances += [generic("convert", [v], tensor(to, 4)) for to in ("f32", "f64", "bf16", "i32", "i8", "i1")]
    v, m, z = tensor("f32", 4), tensor("f32", 4, 4), tensor("complex<f32>", 4)
    instances += [generic("real", [z], v), generic("imag", [z], v), generic("complex", [v, v], z),
                  generic("dot_general", [m, m], m, _DOT),
                  generic("dot_general", [m, m], tensor("bf16", 4, 4), _DOT),
                  *(generic("dot_general", [tensor("i8", 4, 4)] * 2, tensor(to, 4, 4), _DOT) for to in ("i8", "i32")),
                  *(generic("convolution", [tensor("i8", 1, 4, 2), tensor("i8", 2, 2, 3)], tensor(to, 1, 3, 3),
                            _CONVOLUTION) for to in ("i8", "i32")),
                  generic("convolution", [tensor("f32", 1, 4, 2), tensor("f32", 2, 2, 3)], tensor("f32", 1, 3, 3),
                          _CONVOLUTION),
                  generic("triangular_solve", [m, m], m, _TRIANGULAR)]
    instances += [generic("fft", [operand], result,
                          f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: 4>")
                  for kind, operand, result in (("FFT", z, z), ("IFFT", z, z), ("RFFT", v, tensor("complex<f32>", 3)),
                                                ("IRFFT", tensor("complex<f32>", 3), v))]
    return instances


def _elementwise(element: str, v: str) -> list[Form]:
    binary = ["add", "multiply", "maximum", "minimum", "and", "or", "subtract", "divide"]
    return [*(generic(name, [v, v], v) for name in binary), generic("negate", [v], v),
            generic("clamp", [v, v, v], v), generic("select", [tensor("i1", 4), v, v], v)]


def _moving(element: str, v: str, m: str, s: str) -> list[Form]:
    pad = "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 1>"
    cut = "start_indices = array<i64: 1>, limit_indices = array<i64: 3>, strides = array<i64: 1>"
    return [generic("reshape", [v], tensor(element, 2, 2)),
            generic("transpose", [m], m, "permutation = array<i64: 1, 0>"),
            generic("broadcast_in_dim", [v], tensor(element, 2, 4), "broadcast_dimensions = array<i64: 1>"),
            generic("slice", [v], tensor(element, 2), cut), generic("reverse", [v], v, "dimensions = array<i64: 0>"),
            generic("concatenate", [v, v], tensor(element, 8), "dimension = 0 : i64"),
            generic("pad", [v, s], tensor(element, 9), pad),
            generic("dynamic_slice", [v, tensor("i32")], tensor(element, 2), "slice_sizes = array<i64: 2>"),
            generic("dynamic_update_slice", [v, tensor(element, 2), tensor("i32")], v)]


def element_of(kind: str) -> str:
    """The element type of a tensor type as text."""
    return "complex<f32>" if "complex" in kind else kind.removeprefix("tensor<").split("x")[-1].removesuffix(">")


def constant(kind: str, seed: int) -> str:
    """A constant of a type, whose numbers are chosen so that none is the identity of a reduction."""
    dimensions = kind.removeprefix("tensor<").split("complex")[0].split("x")[:-1]
    shape = [int(n) for n in dimensions]
    generator, element = np.random.default_rng(seed), element_of(kind)
    if element == "i1":
        values = np.array(generator.integers(0, 2, shape)).astype(bool).tolist()
        return f"dense<{str(values).lower()}> : {kind}"
    if element.startswith("i"):  # sums of 8 bits wrap around
        low, below = (100, 128) if element == "i8" else (1, 3)
        return f"dense<{np.array(generator.integers(low, below, shape)).tolist()}> : {kind}"
    numbers = np.array(generator.integers(1, 9, shape)) / 4
    if "complex" in kind:
        pairs = ", ".join(f"({x}, {y})" for x, y in zip(numbers, numbers[::-1], strict=True))
        return f"dense<[{pairs}]> : {kind}"
    return f"dense<{numbers.tolist()}> : {kind}"


def identity(kind: str, reduction: str) -> str | None:
    """A constant filled with the identity of a reduction; None if there is none to write."""
    element = element_of(kind)
    if element == "i1":
        return f"dense<{'true' if reduction in ('and', 'min', 'product') else 'false'}> : {kind}"
    table = {"sum": "0", "or": "0", "product": "1", "and": "-1"}
    if element.startswith("i"):
        bits = int(element[1:])
        table |= {"max": str(-(2 ** (bits - 1))), "min": str(2 ** (bits - 1) - 1)}
        return f"dense<{table[reduction]}> : {kind}"
    if "complex" in element or reduction in ("and", "or"):
        return None
    infinity = {"f32": ("0xFF800000", "0x7F800000"), "bf16": ("0xFF80", "0x7F80")}.get(element)
    if infinity is None:
        return None
    text = {"sum": "0.0", "product": "1.0", "max": infinity[0], "min": infinity[1]}[reduction]
    return f"dense<{text}> : {kind}"


# ---- the checks


_GROUPS = ("replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = "
           "#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids")
_SEEDS = (0, 1, 2)
_DIVIDING = ("stablehlo.divide", "stablehlo.triangular_solve")  # by zero, both sides are infinite or not numbers


@dataclass(frozen=True)
class Question:
    """An op with deferred operands, and what its other operands are.

    Attributes:
      form: the op.
      kind: the kind of reduction.
      linear: the deferred operands.
      varying: another operand that differs between devices, if any.
      identities: whether the remaining ones are identities of the reduction.
    """

    form: Form
    kind: str
    linear: tuple[int, ...]
    varying: int | None = None
    identities: bool = False


def check_fact(fact: CompiledFact, natives: Mapping[str, NativeFunction]) -> RuleResult:
    """Executes both sides of a fact, with all conditions and without each of them.

    Args:
      fact: a compiled fact.
      natives: the natives it may call.

    Returns:
      What was found; ``wrong`` is empty for a sound fact.
    """
    asked, held, wrong = 0, 0, []
    refused: list[tuple[Question, Module]] = []
    for question in _questions(fact):
        before = _built(question, last=False)
        if before is None:
            continue
        asked += 1
        if not _says(fact, question, before):
            refused.append((question, before))
            continue
        problem = _differs(question, before)
        held += problem is not None
        if problem:
            wrong.append(f"{question.form.text} ({question.kind}): the values differ")
    conditions = tuple(_without(fact, natives, i, refused)
                       for i in range(len(fact.fact.legal.statements) if fact.fact.legal else 0))
    why = "" if asked else f"no program is generated for {' or '.join(fact.names)}"
    return RuleResult(fact.name, fact.location, asked, rewritten=held, wrong=tuple(wrong), not_generated=why,
                      conditions=conditions, executed=held)


def fact_programs(fact: CompiledFact) -> Iterator[tuple[str, str]]:
    """Programs that a fact is about, reduced first and reduced last: if the fact is right, both compute the same.

    Args:
      fact: a compiled fact; only cases that it accepts are checked.
    """
    for question in _questions(fact):
        before, after = _built(question, last=False), _built(question, last=True)
        if before is not None and after is not None and _says(fact, question, before):
            yield before.text(), after.text()


def _questions(fact: CompiledFact) -> Iterator[Question]:
    kinds = sorted(fact.kinds) or ["sum", "max", "min"]
    for form in forms():
        if form.name not in fact.names:
            continue
        for kind in kinds:
            for linear in _positions(fact, form):
                yield Question(form, kind, linear)
                others = [i for i in range(len(form.operands)) if i not in linear]
                if others and form.name not in _DIVIDING:
                    yield Question(form, kind, linear, identities=True)
                yield from (Question(form, kind, linear, varying=i) for i in others)


def _positions(fact: CompiledFact, form: Form) -> list[tuple[int, ...]]:
    pattern = fact.fact.match.statements[0]
    assert isinstance(pattern, ast.OpPattern)
    count, positions = len(form.operands), set[int]()
    for i, operand in enumerate(pattern.operands):
        if isinstance(operand, ast.Spread):
            if f"...{operand.name}" in fact.linear:
                positions |= set(range(i, count - (len(pattern.operands) - 1 - i)))
        elif isinstance(operand, ast.ValueRef) and operand.name in fact.linear:
            positions.add(i)
    places = [tuple(sorted(positions))]
    if fact.fact.commutes and count == 2 and len(positions) == 1:
        places.append((1 - places[0][0],))
    return [p for p in places if p and max(p) < count]


# ---- programs


def _built(question: Question, *, last: bool) -> Module | None:
    """The program that reduces first or last; None when the question makes no sense for its types."""
    text = _text(question, last=last)
    if text is None:
        return None
    try:
        return parse(text)
    except InputError:
        return None


def _text(question: Question, *, last: bool) -> str | None:
    form, combine = question.form, REDUCERS[question.kind]
    arguments, lines, fixed = [], [], {}
    for i, kind in enumerate(form.operands):
        if i in question.linear or i == question.varying:
            arguments.append(f"%w{i}: {kind}")
        if i in question.linear:
            lines.append(f"%u{i} = stablehlo.constant {constant(kind, i)}")
        elif i == question.varying:
            fixed[i] = f"%w{i}"
        else:
            value = identity(kind, question.kind) if question.identities else constant(kind, i)
            if value is None:
                return None
            lines.append(f"%u{i} = stablehlo.constant {value}")
    if last:
        lines += [_applied(form, "%l", "w", question.linear, fixed), _applied(form, "%p", "u", question.linear, fixed),
                  _all_reduce("%s", "%l", form.result, question.kind),
                  f"%r = stablehlo.{combine} %s, %p : {form.result}"]
    else:
        for i in question.linear:
            lines += [_all_reduce(f"%v{i}", f"%w{i}", form.operands[i], question.kind),
                      f"%x{i} = stablehlo.{combine} %v{i}, %u{i} : {form.operands[i]}"]
        lines.append(_applied(form, "%r", "x", question.linear, fixed))
    body = "\n".join(lines)
    return (f"module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\nfunc.func @main("
            f"{', '.join(arguments)}) -> {form.result} {{\n{body}\nreturn %r : {form.result}\n}}\n}}\n")


def _applied(form: Form, result: str, prefix: str, linear: tuple[int, ...], fixed: Mapping[int, str]) -> str:
    names = [f"%{prefix}{i}" if i in linear else fixed.get(i, f"%u{i}") for i in range(len(form.operands))]
    return f"{result} = {form.text.format(*names)}"


def _all_reduce(result: str, operand: str, kind: str, reduction: str) -> str:
    scalar = f"tensor<{element_of(kind)}>"
    return (f'{result} = "stablehlo.all_reduce"({operand}) ({{^bb0(%x: {scalar}, %y: {scalar}): '
            f'%z = stablehlo.{REDUCERS[reduction]} %x, %y : {scalar} stablehlo.return %z : {scalar}}}) '
            f'{{{_GROUPS}}} : ({kind}) -> {kind}')


# ---- answers


def _says(fact: CompiledFact, question: Question, module: Module) -> bool:
    """Whether a fact says that the op before the return is jointly linear in the question's operands."""
    view = View(module)
    groups = groups_of(view.ops(ALL_REDUCE.op)[0], view)
    assert not isinstance(groups, str)
    op = module.mlir.body.operations[0].regions[0].blocks[0].operations[-2].operation
    context = UniformContext(question.kind, Uniformity(view, groups))
    return all(fact.linear_operands(op, i, context) == frozenset(question.linear) for i in question.linear)


def _differs(question: Question, before: Module, seeds: tuple[int, ...] = _SEEDS[:1]) -> bool | None:
    """Whether the two sides give other values; None when they cannot be executed."""
    after = _built(question, last=True)
    if after is None:
        return None
    try:
        return not all(check(before, after, seed=seed, tolerance=FACT_TOLERANCE).equal for seed in seeds)
    except CannotExecute:
        return None


def _without(fact: CompiledFact, natives: Mapping[str, NativeFunction], position: int,
             refused: list[tuple[Question, Module]]) -> ConditionResult:
    legal = fact.fact.legal
    assert legal is not None
    dropped = legal.statements[position]
    rest = tuple(s for i, s in enumerate(legal.statements) if i != position)
    weaker = compile_fact(replace(fact.fact, legal=replace(legal, statements=rest)), natives, fact.location)
    text = expression(dropped.expression) if isinstance(dropped, ast.Condition | ast.Let) else ""
    fired = 0
    for question, before in refused:
        if not _says(weaker, question, before):
            continue
        differs = _differs(question, before, _SEEDS)
        fired += differs is not None
        if differs:
            return ConditionResult("legal", text, fired, True)
    return ConditionResult("legal", text, fired, False)

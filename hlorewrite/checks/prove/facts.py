"""Proves linearity facts: two elements are enough.

A fact says ``op(AR(a) + p) = AR(op(a)) + op(p)`` with ``+`` the reduction, for every number of devices. By the fold
lemma (``lemmas.py``) it holds for all of them exactly when ``f(x + y) = f(x) + f(y)`` for two devices, where a fixed
operand that no condition makes uniform has a separate value on each. Conditions are used through what they mean here
(``uniform``, ``is_identity``); a condition that is missing is a premise that is missing.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hlorewrite.checks.prove.declared import Relations
from hlorewrite.checks.prove.elements import COMPLEX, KINDS, Arithmetic, Value, reduces, sort_of
from hlorewrite.checks.prove.op_semantics import OpSemantics, Typing
from hlorewrite.checks.prove.solver import SolverAnswer, decide, satisfiable
from hlorewrite.checks.prove.verdict import OVER_REALS, PROVED, REFUTED, UNKNOWN, Verdict
from hlorewrite.rules.syntax import ast

Ask = Mapping[str, OpSemantics]
_MOST_SPREAD = 2
"""A spread has any number of operands; all are treated alike, so two are enough."""


@dataclass(frozen=True)
class Obligation:
    """One obligation: an op with the roles of its operands, element types and a reduction.

    Attributes:
      meaning: what the op computes.
      names: the names of the operands, in the op's order.
      linear: which of them are deferred.
      uniform: which of the others are equal on all devices.
      identity: which of the others are the identity of the reduction.
      kind: the reduction.
      typing: the element types.
      body: the reduction of the op's own region; empty without one.
    """

    meaning: OpSemantics
    names: tuple[str, ...]
    linear: frozenset[str]
    uniform: frozenset[str]
    identity: frozenset[str]
    kind: str
    typing: Typing
    body: str


def prove_fact(fact: ast.Linear, relations: Relations, meanings: Ask, location: str) -> Verdict:
    """The verdict about a linearity fact.

    Args:
      fact: its syntax tree, checked.
      relations: answers which element types ``types`` admits.
      meanings: what ops compute, by name.
      location: where the fact is written.

    Returns:
      ``proved`` when every obligation is, ``proved over the reals`` when some need real arithmetic for floats.
    """
    pattern = fact.match.statements[0]
    assert isinstance(pattern, ast.OpPattern) and fact.floats is not None
    missing = next((name for name in pattern.names if name not in meanings), None)
    if missing is not None:
        return Verdict(fact.name, location, UNKNOWN, f"the meaning of {missing} is not known: "
                       f"declare `meaning {missing}(...)`")
    count = len(_operand_names(pattern))
    other = next((name for name in pattern.names if meanings[name].count not in (None, count)), None)
    if other is not None:
        return Verdict(fact.name, location, UNKNOWN, f"the meaning of {other} has a different number of operands")
    strength = _strength(fact.floats.names)
    asked, typings, over_reals = 0, 0, False
    known: dict[Obligation, list[tuple[SolverAnswer, bool]]] = {}
    for case in cases(fact, relations, meanings):
        typings += 1
        same = _representative(case, strength)
        if same not in known:
            known[same] = answers(same, strength)
        for outcome, values in known[same]:
            asked += 1
            if outcome.status != "proved":
                return _failed(fact, location, case, strength, outcome, asked, typings=typings)
            over_reals |= values
    if not typings:
        return Verdict(fact.name, location, UNKNOWN, "`types` admits no element types of the op")
    trusts = tuple(f"meaning {name}" for name in pattern.names if meanings[name].source == "file")
    status = OVER_REALS if over_reals else PROVED
    return Verdict(fact.name, location, status, "", asked, typings, trusts=trusts)


def _strength(floats: tuple[str, ...]) -> str:
    """How much of arithmetic a float class grants."""
    return "exact" if floats == ("exact",) else "reassociates" if floats == ("reassociates",) else "reals"


def cases(fact: ast.Linear, relations: Relations, meanings: Ask) -> Iterator[Obligation]:
    """Every obligation of a fact: for each op, operand order, reduction and admitted combination of element types."""
    pattern = fact.match.statements[0]
    assert isinstance(pattern, ast.OpPattern)
    conditions = _conditions(fact.legal)
    kinds = KINDS if "any" in fact.kinds.names else fact.kinds.names
    said = next((str(r.kind) for r in pattern.regions if isinstance(r, ast.Reduces) and isinstance(r.kind, str)), "")
    linear = frozenset(_spread_names(fact.operands.operands))
    for op in pattern.names:
        for names in _orders(_operand_names(pattern), fact.commutes):
            for typing in meanings[op].typings(len(names)):
                if not relations.admit(fact.types, {**dict(zip(names, typing.operands, strict=True)),
                                                    pattern.results[0]: typing.result}):
                    continue
                data = (*_data_types(names, linear, typing), typing.result)
                bodies = KINDS if meanings[op].kind == "fold" and not said else (said,)  # any reducer may stand there
                for kind, body in itertools.product(kinds, bodies):
                    if all(reduces(each, element) for each in (kind, body or kind) for element in data):
                        yield Obligation(meanings[op], names, linear, uniform=conditions["uniform"],
                                         identity=conditions["is_identity"], kind=kind, typing=typing, body=body)


def _data_types(names: tuple[str, ...], linear: frozenset[str], typing: Typing) -> list[str]:
    return [element for name, element in zip(names, typing.operands, strict=True) if name in linear]


def _operand_names(pattern: ast.OpPattern) -> tuple[str, ...]:
    names: list[str] = []
    for i, operand in enumerate(pattern.operands):
        if isinstance(operand, ast.Spread):
            names += [f"{operand.name or '_'}.{k}" for k in range(_MOST_SPREAD)]
        else:
            names.append(operand.name if isinstance(operand, ast.ValueRef) and operand.name != "_" else f"_{i}")
    return tuple(names)


def _spread_names(operands: tuple[Any, ...]) -> list[str]:
    return [name for o in operands for name in
            ([f"{o.name}.{k}" for k in range(_MOST_SPREAD)] if isinstance(o, ast.Spread) else [str(o.name)])]


def _orders(names: tuple[str, ...], commutes: bool) -> list[tuple[str, ...]]:
    return [names, names[::-1]] if commutes and len(names) == 2 else [names]


def _conditions(legal: ast.Block | None) -> dict[str, frozenset[str]]:
    """The operands each condition is about; only conditions that stand alone count, not parts of an `or`."""
    found: dict[str, set[str]] = {"uniform": set(), "is_identity": set()}
    for statement in legal.statements if legal else ():
        call = statement.expression if isinstance(statement, ast.Condition) else None
        if isinstance(call, ast.Call) and call.function in found:
            found[call.function] |= set(_spread_names(call.arguments))
    return {name: frozenset(values) for name, values in found.items()}


# ---- the obligation


def _representative(case: Obligation, strength: str) -> Obligation:
    """One case for many: where nothing is converted, floats of all formats are the same to the solver.

    So are integers of all widths, signed or not, where elements are only moved or compared.
    """
    data = {*_data_types(case.names, case.linear, case.typing), case.typing.result}
    if len(data) > 1 or case.meaning.op == "convert":
        return case
    element = case.typing.result
    alike = {"float": "f32", "integer": "i32" if _only_compares(case, strength) else element}
    alike = alike.get(sort_of(element), element)
    types = tuple(alike if e == element else e for e in case.typing.operands)
    return replace(case, typing=Typing(types, alike))


def _only_compares(case: Obligation, strength: str) -> bool:
    ordered = case.kind in ("max", "min") and case.body in ("", case.kind) and case.meaning.op in _COMPARING
    return ordered and strength == "exact"


def answers(case: Obligation, strength: str) -> list[tuple[SolverAnswer, bool]]:
    """The solver's answers for a case, each marked if it is about real numbers instead of floats.

    For reductions that only compare, integers are any numbers in an order first: that is faster.
    """
    if _only_compares(case, strength):
        found = list(_decided(case, strength, any_order=True))
        if all(outcome.status == "proved" for outcome, _ in found):
            return found
    return list(_decided(case, strength))


_COMPARING = ("maximum", "minimum", "clamp", "reduce", "reduce_window", "scatter", "select", "gather", "pad", "slice",
              "reshape", "transpose", "reverse", "concatenate", "dynamic_slice", "dynamic_update_slice")


def _decided(case: Obligation, strength: str, any_order: bool = False) -> Iterator[tuple[SolverAnswer, bool]]:
    """The solver's answers for a case, and whether each is about real numbers instead of floats."""
    claims, premises, math = obligation(case, strength, any_order)
    if premises and satisfiable(premises) is False:
        yield SolverAnswer("unknown", {}), False
        return
    floats = any(sort_of(e) in ("float", "complex") for e in (*case.typing.operands, case.typing.result))
    for claim in claims:
        yield decide(claim, premises), floats and math.strength != "exact"


def obligation(case: Obligation, strength: str, any_order: bool = False) -> tuple[list[Any], list[Any], Arithmetic]:
    """The claims ``f(x + y) = f(x) + f(y)`` of a case, their premises, and the arithmetic they are written in.

    Args:
      case: the op, the roles of its operands, element types and the reduction.
      strength: what floats are (``elements.CLASSES``).
      any_order: whether integers are any numbers in an order.
    """
    complex_numbers = any(e in COMPLEX for e in (*case.typing.operands, case.typing.result))
    math = Arithmetic("reals" if strength == "reassociates" and complex_numbers else strength, any_order)
    sides = [case.meaning.elements(math, case.typing, _reader(case, math, device), case.body or case.kind)
             for device in ("both", "x", "y")]
    claims = [math.equal(both, math.reduce(case.kind, case.typing.result, x, y))
              for both, x, y in _together(case, *sides)]
    return claims, math.premises, math


def _together(case: Obligation, both: list[Value], x: list[Value], y: list[Value]) -> Iterator[tuple[Value, ...]]:
    """The operands of one element on either device: the same elements, unless their selectors differ."""
    selectors = {case.names[i] for i in _selectors(case)}
    if selectors <= case.uniform:
        return zip(both, x, y, strict=True)
    if selectors & case.linear:
        return itertools.product(both, x, y)
    return ((on_x, of_x, of_y) for (on_x, of_x), of_y in itertools.product(zip(both, x, strict=True), y))


def _reader(case: Obligation, math: Arithmetic, device: str) -> Any:
    """Reads elements of operands on one device, or of their reduction over both."""
    selectors = {case.names[i] for i in _selectors(case)}
    third = "*" if selectors & case.linear else ""  # a reduced index says something else than that of either device
    choice = "" if selectors <= case.uniform else {"x": "", "y": "'", "both": third}[device]

    def get(i: int, place: str) -> Value:
        name, element = case.names[i], case.typing.operands[i]
        place = f"{place}{choice}"
        if name in case.linear:
            if device != "both":
                return math.variable(f"{device}_{name}[{place}]", element)
            x, y = (math.variable(f"{d}_{name}[{place}]", element) for d in ("x", "y"))
            return math.reduce(case.kind, element, x, y)
        if name in case.identity:
            return math.identity(case.kind, element)
        own = "" if name in case.uniform or device != "y" else "y_"
        return math.variable(f"{own}{name}[{place}]", element)
    return get


def _selectors(case: Obligation) -> range | tuple[int, ...]:
    """Positions of the operands that say which elements are taken; a spread of indices is at the end."""
    chosen = case.meaning.selectors
    if case.meaning.op in ("dynamic_slice", "dynamic_update_slice"):
        return range(chosen[0], len(case.names))
    return tuple(i for i in chosen if i < len(case.names))


def _failed(fact: ast.Linear, location: str, case: Obligation, strength: str, outcome: SolverAnswer, asked: int,
            *, typings: int) -> Verdict:
    types = (*case.typing.operands, case.typing.result)
    where = f"{case.meaning.op} of {', '.join(case.typing.operands)} to {case.typing.result}, reduction {case.kind}"
    model = tuple(outcome.model.items())
    if strength != "reals" and all(o.status == "proved" for o, _ in _decided(case, "reals")):
        floats = ", ".join(fact.floats.names) if fact.floats else ""
        return Verdict(fact.name, location, UNKNOWN, f"{where}: holds over the reals, but `floats {floats}` is not "
                       "proved", asked, typings, types=types, kind=case.kind, op=case.meaning.op)
    status = REFUTED if outcome.status == "refuted" else UNKNOWN
    return Verdict(fact.name, location, status, reason=where, obligations=asked, typings=typings, model=model,
                   types=types, kind=case.kind, op=case.meaning.op)

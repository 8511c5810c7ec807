"""The lemmas that extend a proof about two elements to any number: their induction steps, as questions for the solver.

What is proved on paper is only that a statement about numbers holds for all n ≥ 1 when it holds for 1, and for n + 1
whenever it holds for n. ``T`` is any set of elements, ``+`` and ``*`` any operations on it with the named properties.

* **fold**: from f(x + y) = f(x) * f(y) follows f(a₁ + … + aₙ) = f(a₁) * … * f(aₙ). Nothing is assumed about + and *.
  For n = 2 this is the premise, so the premise is also needed.
* **exchange**: for a commutative semigroup, (Σ gₖ(xₖ)) + (Σ gₖ(yₖ)) = Σ gₖ(xₖ + yₖ) when every gₖ commutes with +.
* **selection**: an element that is x[σ(j)], or a constant c with c + c = c, commutes with +.
* **flattening**: a reduction over disjoint sets, one after the other, is the reduction over their union.
* **uniform sum**: n equal terms x add up to n·x, for integers modulo 2^w and for real numbers.
* **uniform fold**: n equal terms x reduce to x when x + x = x.
* **division**: when q·s ≤ j < q·s + s, then j div s is q.
* **identities**: a reduction in which all terms but one are the identity is that term.
"""

from dataclasses import dataclass
from typing import Any

from hlorewrite.checks.prove.solver import solver


@dataclass(frozen=True)
class LemmaStep:
    """One question of a lemma.

    Attributes:
      lemma: its name.
      name: which part of the induction.
      claim: what is to be shown.
      premises: what the claim must follow from.
      holds: False for a counter-check: without a premise the claim must not be provable.
    """

    lemma: str
    name: str
    claim: Any
    premises: tuple[Any, ...]
    holds: bool = True


def division(j: Any, s: Any, q: Any) -> Any:
    """The division lemma about three numbers."""
    z3 = solver()
    return z3.Implies(z3.And(s >= 1, q * s <= j, j < q * s + s), z3.And(j / s == q, j % s == j - q * s))


def steps() -> list[LemmaStep]:
    """Every base case and induction step, and counter-checks that the premises are needed."""
    return [*_fold(), *_exchange(), *_selection(), *_flattening(), *_uniform(), *_division(), *_identities()]


def _sort() -> tuple[Any, Any, Any]:
    z3 = solver()
    elements = z3.DeclareSort("T")
    return elements, z3.Function("+", *[elements] * 3), z3.Function("*", *[elements] * 3)


def _semigroup(plus: Any, sort: Any) -> tuple[Any, ...]:
    z3 = solver()
    a, b, c = z3.Consts("a b c", sort)
    return (z3.ForAll([a, b], plus(a, b) == plus(b, a)),
            z3.ForAll([a, b, c], plus(plus(a, b), c) == plus(a, plus(b, c))))


def _fold() -> list[LemmaStep]:
    z3 = solver()
    sort, plus, times = _sort()
    n, integers = z3.Int("n"), z3.IntSort()
    f, element = z3.Function("f", sort, sort), z3.Function("element", integers, sort)
    left, right = z3.Function("left", integers, sort), z3.Function("right", integers, sort)
    x, y = z3.Consts("x y", sort)
    two = z3.ForAll([x, y], f(plus(x, y)) == times(f(x), f(y)))
    starts = (left(1) == element(1), right(1) == f(element(1)))
    grows = (left(n + 1) == plus(left(n), element(n + 1)), right(n + 1) == times(right(n), f(element(n + 1))))
    step = z3.Implies(f(left(n)) == right(n), f(left(n + 1)) == right(n + 1))
    with_part = z3.Implies(f(left(n)) == right(n), f(plus(left(n), x)) == times(right(n), f(x)))
    return [LemmaStep("fold", "one element", f(left(1)) == right(1), starts),
            LemmaStep("fold", "step", step, (two, *grows)),
            LemmaStep("fold", "with the uniform part", with_part, (two,)),
            LemmaStep("fold", "step", step, grows, holds=False)]


def _exchange() -> list[LemmaStep]:
    z3 = solver()
    sort, plus, _ = _sort()
    n, integers = z3.Int("n"), z3.IntSort()
    g = z3.Function("g", integers, sort, sort)
    xs, ys, zs, x, y = (z3.Function(name, integers, sort) for name in ("sum x", "sum y", "sum z", "x", "y"))
    i, a, b = z3.Int("i"), *z3.Consts("a b", sort)
    commutes = z3.ForAll([i, a, b], g(i, plus(a, b)) == plus(g(i, a), g(i, b)))
    grows = tuple(total(n + 1) == plus(total(n), g(n + 1, value)) for total, value in (
        (xs, x(n + 1)), (ys, y(n + 1)), (zs, plus(x(n + 1), y(n + 1)))))
    starts = tuple(total(1) == g(1, value) for total, value in ((xs, x(1)), (ys, y(1)), (zs, plus(x(1), y(1)))))
    step = z3.Implies(zs(n) == plus(xs(n), ys(n)), zs(n + 1) == plus(xs(n + 1), ys(n + 1)))
    return [LemmaStep("exchange", "one term", zs(1) == plus(xs(1), ys(1)), (commutes, *starts)),
            LemmaStep("exchange", "step", step, (*_semigroup(plus, sort), commutes, *grows)),
            LemmaStep("exchange", "step", step, (*_semigroup(plus, sort), *grows), holds=False)]


def _selection() -> list[LemmaStep]:
    z3 = solver()
    sort, plus, _ = _sort()
    places, results = z3.DeclareSort("place"), z3.DeclareSort("result")
    chosen, which = z3.Function("chosen", results, places), z3.Function("which", results, z3.IntSort())
    x1, y1, x2, y2 = (z3.Function(name, places, sort) for name in ("x1", "y1", "x2", "y2"))
    j, c = z3.Const("j", results), z3.Const("c", sort)

    def selected(first: Any, second: Any) -> Any:
        return z3.If(which(j) == 0, first(chosen(j)), z3.If(which(j) == 1, second(chosen(j)), c))
    claim = selected(lambda p: plus(x1(p), y1(p)), lambda p: plus(x2(p), y2(p))) == plus(
        selected(x1, x2), selected(y1, y2))
    return [LemmaStep("selection", "two operands and a constant", claim, (plus(c, c) == c,)),
            LemmaStep("selection", "two operands and a constant", claim, (), holds=False)]


def _flattening() -> list[LemmaStep]:
    z3 = solver()
    sort, plus, _ = _sort()
    n, integers = z3.Int("n"), z3.IntSort()
    inner, outer, union = (z3.Function(name, integers, sort) for name in ("inner", "outer", "union"))
    grows = (outer(n + 1) == plus(outer(n), inner(n + 1)), union(n + 1) == plus(union(n), inner(n + 1)))
    added, next_, total = z3.Consts("added next total", sort)
    append = z3.Implies(plus(total, added) == plus(total, added),
                        plus(plus(total, added), next_) == plus(total, plus(added, next_)))
    return [LemmaStep("flattening", "one set", outer(1) == union(1), (outer(1) == inner(1), union(1) == inner(1))),
            LemmaStep("flattening", "one set more", z3.Implies(outer(n) == union(n), outer(n + 1) == union(n + 1)),
            grows), LemmaStep("flattening", "one member more", append, _semigroup(plus, sort)),
            LemmaStep("flattening", "one member more", append, (), holds=False)]


def _uniform() -> list[LemmaStep]:
    z3 = solver()
    found = []
    for bits in (2, 4, 8, 16, 32, 64):
        total, n, x = z3.BitVecs("total n x", bits)
        step = z3.Implies(total == n * x, total + x == (n + 1) * x)
        found.append(LemmaStep("uniform sum", f"step, {bits} bits", step, ()))
    total, n, x = z3.Reals("total n x")
    step = z3.Implies(total == n * x, total + x == (n + 1) * x)
    found.append(LemmaStep("uniform sum", "step, real numbers", step, ()))
    sort, plus, _ = _sort()
    same, partial = z3.Consts("x partial", sort)
    step = z3.Implies(partial == same, plus(partial, same) == same)
    return [*found, LemmaStep("uniform fold", "step", step, (plus(same, same) == same,)),
            LemmaStep("uniform fold", "step", step, (), holds=False)]


def _division() -> list[LemmaStep]:
    j, s, q = solver().Ints("j s q")
    return [LemmaStep("division", "all numbers", division(j, s, q), ())]


def _identities() -> list[LemmaStep]:
    z3 = solver()
    sort, plus, _ = _sort()
    i, k, integers = z3.Int("i"), z3.Int("k"), z3.IntSort()
    partial, term = z3.Function("partial", integers, sort), z3.Function("term", integers, sort)
    e, a = z3.Consts("e a", sort)
    value = z3.Const("value", sort)
    unit = (z3.ForAll([a], plus(a, e) == a), z3.ForAll([a], plus(e, a) == a))
    grows = partial(i + 1) == plus(partial(i), term(i + 1))
    terms = (term(i + 1) == z3.If(i + 1 == k, value, e), grows, k >= 1, i >= 0)
    held = [partial(m) == z3.If(m >= k, value, e) for m in (i, i + 1)]
    step = z3.Implies(held[0], held[1])
    return [LemmaStep("identities", "no term", partial(0) == z3.If(k <= 0, value, e), (partial(0) == e, k >= 1)),
            LemmaStep("identities", "step", step, (*unit, *terms)),
            LemmaStep("identities", "step", step, terms, holds=False)]

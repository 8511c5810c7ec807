"""Random SPMD programs, for checking that passes keep their meaning.

A program is a manual region over a small mesh: loops with accumulators, branches, private functions, device ids, mixed
groups and element types, reductions used linearly and otherwise. It is always well-formed: a collective stands only
where all members of each of its groups get equally often, so it never hangs. Along which mesh axes values may differ is
tracked while it is written.
"""

from __future__ import annotations

from generators.random_collectives import collective
from generators.random_regions import loop, step
from generators.random_writer import NOWHERE, SCALAR_INT, WIDTH, Choices, Frame, Term, Writer, vector

MESHES = ((("x", 2),), (("x", 4),), (("x", 2), ("y", 2)), (("x", 2), ("y", 4)))
ELEMENTS = (("f32",), ("f32",), ("f32", "i32"), ("i32", "ui8"), ("f32", "i32", "i1"), ("i32", "i1"), ("f32", "bf16"))
"""What a program computes with; most often the first."""


def random_program(choices: Choices) -> str:
    """MLIR text of one random program.

    Args:
      choices: where decisions come from; the same decisions give the same program.

    Returns:
      A module with one manual region over 2, 4 or 8 devices; results are sharded over the whole mesh, so that what
      each device holds is seen.

    Example:
      >>> import random
      >>> random_program(random.Random(0)) == random_program(random.Random(0))
      True
    """
    mesh = MESHES[choices.randrange(len(MESHES))]
    elements, profile = ELEMENTS[choices.randrange(len(ELEMENTS))], choices.randrange(5)
    writer = Writer(choices, mesh, elements, scatters=profile == 0, straight=profile in (1, 2))
    kind = vector(writer.elements[0])
    scope = Frame([Term("%a", kind, NOWHERE), Term("%b", kind, writer.everywhere),
                   Term("%c", kind, frozenset({mesh[0][0]})), Term("%n", SCALAR_INT, NOWHERE)])
    for _ in range(2 + choices.randrange(4)):
        step(writer, scope, 2)
    collective(writer, scope)
    loop(writer, scope, 2)
    outs = [writer.read(scope, kind) for _ in range(2)]
    outs += [v for v in scope.values[-4:] if v.type in [vector(element) for element in writer.elements]]
    return _module(writer, scope, kind, outs)


def _module(writer: Writer, scope: Frame, kind: str, outs: list[Term]) -> str:
    """The text around a manual region."""
    mesh, count = writer.mesh, len(outs)
    total = len(writer.groups[0].rows[0])
    axes = ", ".join(f'"{name}"' for name, _ in mesh)
    sizes = ", ".join(f'"{name}"={size}' for name, size in mesh)
    everywhere, one_axis = f"[{{{axes}}}]", f'[{{"{mesh[0][0]}"}}]'

    def times(each: str, factor: int) -> str:
        return each.replace(f"tensor<{WIDTH}x", f"tensor<{WIDTH * factor}x")

    whole, half = times(kind, total), times(kind, mesh[0][1])
    wholes = ", ".join(times(v.type, total) for v in outs)
    results = f"%r:{count}" if count > 1 else "%r"
    named = [f"%r#{n}" for n in range(count)] if count > 1 else ["%r"]
    ins = ", ".join(f"<@mesh, {s}>" for s in ("[{}]", everywhere, one_axis, "[]"))
    return "\n".join([
        f"module @random attributes {{mhlo.num_partitions = {total} : i32, mhlo.num_replicas = 1 : i32}} {{",
        f"  sdy.mesh @mesh = <[{sizes}]>",
        f"  func.func public @main(%g0: {kind}, %g1: {whole}, %g2: {half}, %g3: {SCALAR_INT}) -> ({wholes}) {{",
        f"    {results} = sdy.manual_computation(%g0, %g1, %g2, %g3) in_shardings=[{ins}] out_shardings=["
        + ", ".join([f"<@mesh, {everywhere}>"] * count) + f"] manual_axes={{{axes}}} "
        f"(%a: {kind}, %b: {kind}, %c: {kind}, %n: {SCALAR_INT}) {{",
        *scope.lines,
        f"      sdy.return {', '.join(v.name for v in outs)} : {', '.join(v.type for v in outs)}",
        f"    }} : ({kind}, {whole}, {half}, {SCALAR_INT}) -> ({wholes})",
        f"    return {', '.join(named)} : {wholes}", "  }", *writer.functions, "}"]) + "\n"

"""Random SPMD programs, for checking that passes keep their meaning.

A program is a manual region over a small mesh, two nested ones, or a module of replicas and partitions: loops with
accumulators, branches, switches in sequence, private functions, device ids, mixed groups, element types and shapes,
reductions used linearly and otherwise. It is always well-formed: a collective stands only where all members of each of
its groups get equally often, so it never hangs. Along which mesh axes values may differ is tracked while it is written.
"""

from __future__ import annotations

from generators.random_collectives import collective
from generators.random_forms import NestedForm, ProgramForm, ReplicaForm, Written
from generators.random_regions import loop, step
from generators.random_types import ELEMENTS
from generators.random_writer import NOWHERE, SCALAR_INT, WIDTH, Choices, Frame, Term, Writer, element_of, vector

FORMS = (ProgramForm((("x", 2),)), ProgramForm((("x", 4),)), ProgramForm((("x", 2), ("y", 2))),
         ProgramForm((("x", 2), ("y", 4))), NestedForm((("x", 2), ("y", 2))), ReplicaForm((("r", 2), ("p", 2))),
         ReplicaForm((("r", 4), ("p", 1))), ReplicaForm((("r", 1), ("p", 4))))
"""How programs number their devices."""

SHAPES = ((str(WIDTH),), (str(WIDTH),), (str(WIDTH),), (str(WIDTH), "4x4"), (str(WIDTH), "4x4", "1"),
          (str(WIDTH), "1", "0"))
"""Shapes a program computes with; most often the first."""


def random_program(choices: Choices) -> str:
    """MLIR text of one random program.

    Args:
      choices: where decisions come from; the same decisions give the same program.

    Returns:
      A module for 2, 4 or 8 devices.

    Example:
      >>> import random
      >>> random_program(random.Random(0)) == random_program(random.Random(0))
      True
    """
    form = FORMS[choices.randrange(len(FORMS))]
    elements, shapes = ELEMENTS[choices.randrange(len(ELEMENTS))], SHAPES[choices.randrange(len(SHAPES))]
    profile = choices.randrange(5)
    writer = Writer(choices, form, elements, shapes, scatters=profile == 0, straight=profile in (1, 2))
    inputs = _inputs(writer)
    scope = Frame(list(inputs))
    for _ in range(2 + choices.randrange(4)):
        step(writer, scope, 2)
    collective(writer, scope)
    loop(writer, scope, 2)
    outs = [writer.read(scope, vector(writer.elements[0])) for _ in range(2)]
    outs += [v for v in scope.values[-4:] if v.type != SCALAR_INT and element_of(v.type) in writer.elements
             and not v.type.startswith(f"tensor<{element_of(v.type)}")]
    return form.module(Written(inputs, tuple(outs), tuple(scope.lines), tuple(writer.functions)))


def _inputs(writer: Writer) -> tuple[Term, ...]:
    """Values that are equal everywhere, nowhere and along one axis, and an integer that may be a trip count."""
    kind, everywhere, form = vector(writer.elements[0]), writer.everywhere, writer.form
    if isinstance(form, ReplicaForm):  # Arguments of such a module are those of each process.
        return tuple(Term(name, kind if name != "%n" else SCALAR_INT, everywhere) for name in ("%a", "%b", "%c", "%n"))
    return (Term("%a", kind, NOWHERE), Term("%b", kind, everywhere), Term("%c", kind, frozenset({form.mesh[0][0]})),
            Term("%n", SCALAR_INT, NOWHERE))

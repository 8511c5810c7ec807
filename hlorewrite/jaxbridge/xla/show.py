"""Compilations, executions and comparisons as text tables."""

from typing import cast

import numpy as np

from hlorewrite.checks.reference.rounding.tightest_bound import bound_lines
from hlorewrite.hlo.collectives import HloCollective, executed_bytes
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE
from hlorewrite.jaxbridge.xla.compile_for import Compilation
from hlorewrite.jaxbridge.xla.execute import Execution, Verification
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table


def compilation_text(made: Compilation) -> str:
    """A compilation as the command line shows it."""
    memory = made.memory
    total, arguments, outputs, temporaries, aliased = (format_bytes(size, 1) for size in (
        memory.total, memory.argument, memory.output, memory.temp, memory.alias))
    lines = [f"{made.target}: {made.devices} devices, compiled in {made.compile_s:.1f} s",
             f"memory per device: {total} = arguments {arguments} + outputs {outputs} + temporaries {temporaries} - "
             f"aliased {aliased}", ""]
    return "\n".join([*lines, *collectives_text(made.collectives)]) + "\n"


def collectives_text(collectives: tuple[HloCollective, ...]) -> list[str]:
    """Lines for collectives by loop depth, and the executed bytes of each kind."""
    if not collectives:
        return ["no collective"]
    rows = [("depth", "kind", "payload", "trips", "executed", "groups", "source")]
    rows += [(str(c.loop_depth), c.kind, format_bytes(c.bytes, 1), str(c.trips) + ("" if c.trips_known else "?"),
              format_bytes(c.executed_bytes, 1), _groups(c), c.source)
             for c in sorted(collectives, key=lambda c: (c.loop_depth, c.kind, -c.executed_bytes))]
    lines = table(rows, "<<>>>")
    lines += ["", "executed bytes per device: " + ", ".join(f"{kind} {format_bytes(total, 1)}"
                                                           for kind, total in executed_bytes(collectives).items())]
    if not all(c.trips_known for c in collectives):
        lines.append("? a loop around it has a trip count XLA does not know; that loop counts once")
    return lines


def _groups(collective: HloCollective) -> str:
    if collective.kind == COLLECTIVE_PERMUTE.kind:
        return f"{len(collective.groups)} pairs"
    sizes = {len(group) for group in collective.groups}
    size = str(sizes.pop()) if len(sizes) == 1 else "uneven"
    return f"{len(collective.groups)} x {size}"


def verification_text(made: Verification) -> str:
    """A comparison as the command line shows it."""
    rows = [("output", "type", "max abs error", "max rel error", "allowed", "")]
    rows += [(o.value.name, f"{o.value.element}[{','.join(map(str, o.value.shape))}]", f"{o.abs_error:.3g}",
              f"{o.rel_error:.3g}", o.allowed, ("equal" if o.equal else "DIFFERS")
              + (f" ({o.nonfinite} not finite)" if o.nonfinite else "")) for o in made.outputs]
    wrong = sum(not o.equal for o in made.outputs)
    count = len(made.outputs)
    worst = max((o.rel_error for o in made.outputs), default=0.0)
    verdict = (f"{count} outputs equal on {made.before.compilation.devices} devices, largest relative error {worst:.3g}"
               if not wrong else f"{wrong} of {count} outputs differ")
    near = bound_lines([(o.value.name, None if o.bound is None else o.abs_error, o.bound, o.reason)
                        for o in made.outputs])
    return "\n".join([*table(rows, "<<>>>"), *near, "", verdict, *made.problems]) + "\n"


def execution_rows(made: Execution) -> list[dict[str, object]]:
    """For each output: name, shape, dtype, least and largest value, elements that are not finite."""
    out = []
    for value, shards in zip(made.outputs, made.shards, strict=True):
        wide = np.concatenate([np.asarray(s).astype(np.complex128 if s.dtype.kind == "c" else np.float64).ravel()
                               for s in shards])
        size = np.abs(wide) if wide.dtype.kind == "c" else wide
        finite = size[np.isfinite(size)]
        out.append({"name": value.name, "shape": list(value.shape), "dtype": value.element,
                    "min": float(finite.min()) if finite.size else None,
                    "max": float(finite.max()) if finite.size else None, "nonfinite": int(size.size - finite.size)})
    return out


def execution_text(made: Execution) -> str:
    """An execution as the command line shows it."""
    rows = [("output", "type", "min", "max", "not finite")]
    for row in execution_rows(made):
        shape = ",".join(map(str, cast(list, row["shape"])))
        least, most = ("-" if row[k] is None else f"{row[k]:.6g}" for k in ("min", "max"))
        rows.append((str(row["name"]), f"{row['dtype']}[{shape}]", least, most, str(row["nonfinite"])))
    return "\n".join(table(rows, "<<>>>")) + "\n"

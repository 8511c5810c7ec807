"""XLA options that a step is compiled with in addition to the user's, for that compilation alone."""

from __future__ import annotations

from dataclasses import replace

from jaxlib import version as jaxlib_version

from hlorewrite.jaxbridge.decorator.report import Rewritten
from hlorewrite.jaxbridge.xla import protection
from hlorewrite.jaxbridge.xla.without_code import DeviceSet


def with_compiler_options(made: Rewritten, place: DeviceSet, protect: bool) -> Rewritten:
    """A result whose report holds all options of its compilation.

    Args:
      made: the result; options of a replayed plan are in its report.
      place: what the step is compiled for, with the options that the user gave; those stay.
      protect: whether a rewritten module is compiled without an XLA pass that miscompiles on GPU.
    """
    options = {name: value for name, value in made.report.compiler_options.items() if name not in place.flags}
    if protect and made.bytecode is not None:
        options |= protection.options(jaxlib_version.__version_info__, place.platform,
                                      str(place.flags.get(protection.FLAG, "")))
    return replace(made, report=replace(made.report, compiler_options=options)) if options else made

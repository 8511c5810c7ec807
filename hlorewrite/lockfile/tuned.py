"""Plans that ``hlorewrite tune`` writes: what they contain of the chosen options, and for which runs they fit.

The run that replays one need not repeat its passes, ``keep``, memory budget or XLA options: what the user leaves open
is the plan's, and what the user gives has to be the same.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.hlo.published_flags import PROFILE, is_profile, published_values
from hlorewrite.ir import Format, Module, emit, parse
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.fingerprint import CODE

CHOSEN_BY = "hlorewrite tune"
OPTIONS = "compiler_options"
_OF_EXPORTS = "jax.uses_shape_polymorphism"
_WITH_PASSES = ("passes", "files", CODE)

CompilerOptions = Mapping[str, str | bool | int]


@dataclass(frozen=True)
class LeftOpen:
    """The options that a run leaves to the plan.

    Attributes:
      names: options that the user did not give, as ``made_for`` calls them.
      flags: XLA flags that the user sets, for this step or in ``XLA_FLAGS``.
    """

    names: frozenset[str] = frozenset()
    flags: Mapping[str, object] = field(default_factory=dict)


def is_tuned(document: PlanDocument) -> bool:
    """Whether a plan is a choice of ``hlorewrite tune``."""
    return document.decision.get("chosen_by") == CHOSEN_BY


def options_of(document: PlanDocument, name: str) -> dict[str, str | bool | int]:
    """The XLA options that a step is compiled with under a plan, for that compilation alone.

    Args:
      document: the plan.
      name: its file.

    Raises:
      PlanMismatch: it contains an option, or a value of one, that ``hlorewrite tune`` does not try.
    """
    given = document.decision.get(OPTIONS, {})
    if not isinstance(given, Mapping):
        raise PlanMismatch("is not a complete plan", location=name)
    for key, value in given.items():
        if key == PROFILE and is_profile(value):
            continue
        if not (isinstance(value, str | bool | int) and _shown(value) in _tried().get(str(key), ())):
            raise PlanMismatch(f'contains "{key}", which a plan may not set', location=name)
    return dict(given)


@cache
def _tried() -> dict[str, frozenset[str]]:
    """The options that ``hlorewrite tune`` tries on any release of XLA, each with the texts of its values."""
    return {name: frozenset(map(_shown, values)) for name, values in published_values().items()}


def _shown(value: object) -> str:
    text = str(value)
    return text.lower() if text.lower() in ("true", "false") else text


def options_text(options: Mapping[str, object]) -> str:
    """XLA options as text; the same for ``True`` and ``"true"``. A profile is shortened to a digest.

    Example:
      >>> options_text({"xla_gpu_b": True, "xla_gpu_a": "true"})
      'xla_gpu_a=true,xla_gpu_b=true'
    """
    short = {name: hashlib.sha256(str(value).encode()).hexdigest()[:16] if is_profile(value) else _shown(value)
             for name, value in options.items()}
    return ",".join(f"{name}={short[name]}" for name in sorted(short))


def portable_digest(module: Module) -> str:
    """A digest that is the same for a jitted step and its ``jax.export``, whose constants StableHLO's writer shares."""
    try:
        written = parse(emit(module, Format.PORTABLE), name=module.name)
    except HlorewriteError:  # an op outside of StableHLO, which an export could not hold either
        return module.digest()
    attributes = written.operation.attributes
    if _OF_EXPORTS in attributes:
        del attributes[_OF_EXPORTS]
    return written.digest()


def wanted_of_tuned(document: PlanDocument, wanted: Mapping[str, str], original: Module, left: LeftOpen,
                    name: str) -> dict[str, str]:
    """The conditions under which a run may replay a tuned plan.

    Args:
      document: the plan.
      wanted: the same for plans that the run writes itself.
      original: the step's module.
      left: what the user leaves open.
      name: the plan's file.

    Raises:
      PlanMismatch: the plan is not complete.
    """
    options = options_of(document, name)
    opened = {*left.names, *(_WITH_PASSES if "passes" in left.names else ())}
    made = {key: value for key, value in wanted.items() if key not in opened}
    made |= {key: value for key, value in document.made_for.items() if key in opened}
    made["module"] = portable_digest(original)
    if options:
        made[OPTIONS] = options_text({key: left.flags.get(key, value) for key, value in options.items()})
    return made

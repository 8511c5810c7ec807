"""The releases of JAX that hlorewrite is tested with, and the warning about others."""

import re
import warnings

OLDEST, NEWEST = (0, 10, 2), (0, 12)
"""The oldest supported release, and the newest minor version that everything was run on."""


def release(version: str) -> tuple[int, ...]:
    """The three numbers of a release.

    Example:
      >>> release("0.12.0.1"), release("0.10.2.dev20260101")
      ((0, 12, 0), (0, 10, 2))
    """
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def same_release(version: str, other: str) -> bool:
    """Whether two packages of JAX are of the same release, as those that compile must be.

    Example:
      >>> same_release("0.12.0.1", "0.12.0"), same_release("0.11.1", "0.12.0")
      (True, False)
    """
    return release(version) == release(other)


class UnknownReleaseWarning(UserWarning):
    """The installed JAX is newer, or older, than those that hlorewrite is tested with."""


def unknown_release(version: tuple[int, ...], package: str = "jaxlib") -> str:
    """The warning about a release that hlorewrite was not tested with; empty for a tested one.

    Args:
      version: the version of the installed package.
      package: jax or jaxlib.

    Example:
      >>> unknown_release((0, 12, 4)), unknown_release((0, 13, 0))[:71]
      ('', 'jaxlib 0.13.0 is newer than hlorewrite is tested with (0.10.2 to 0.12):')
    """
    if tuple(version[:3]) >= OLDEST and tuple(version[:2]) <= NEWEST:
        return ""
    known = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    side = "older" if tuple(version[:3]) < OLDEST else "newer"
    return (f"{package} {'.'.join(map(str, version[:3]))} is {side} than hlorewrite is tested with ({known}): reading, "
            "rewriting, reports, checks and proofs use nothing private of JAX and keep working; the decorators, exec, "
            "plans and compilation for GPUs rest on private names, and stop with an error if one is gone; what XLA "
            "miscompiles, and its flags, are taken to be those of the nearest tested release")


def warn_of_unknown_release(version: tuple[int, ...]) -> None:
    """Warns once in a process of a release that hlorewrite was not tested with."""
    sentence = unknown_release(version)
    if sentence:
        warnings.warn(sentence, UnknownReleaseWarning, stacklevel=2)


def missing_private_name(error: Exception, version: tuple[int, ...]) -> str:
    """The sentence for a private name of JAX that is gone.

    Args:
      error: the error of the import.
      version: of JAX.

    Example:
      >>> missing_private_name(ImportError("cannot import name 'pxla'"), (0, 14, 0))
      "jax 0.14.0 lacks a private name that hlorewrite needs (cannot import name 'pxla')"
    """
    return f"jax {'.'.join(map(str, version[:3]))} lacks a private name that hlorewrite needs ({error})"

"""Optional parts of the installation, and the one line that says how to get them."""

from collections.abc import Mapping
from types import MappingProxyType

EXTRAS: Mapping[str, str] = MappingProxyType({
    "aot": "compiling for described GPUs, on a machine without one",
    "prove": "proving rules and facts",
    "reshard": "planning resharding with a solver, if the greedy plan may not be the best",
    "terminal": "a progress line for long-running commands",
    "testing": "testing passes and rules in your own repository (hlorewrite.testing)",
    "viz": "pictures",
})
"""Extra -> what it is for."""


def install(extra: str) -> str:
    """The hint for something that is not installed.

    Args:
      extra: one of ``EXTRAS``, or several with commas between them.

    Raises:
      KeyError: there is no such extra.

    Example:
      >>> install("viz")
      "pip install 'hlorewrite[viz]'"
    """
    for each in extra.split(","):
        if each not in EXTRAS:
            raise KeyError(each)
    return f"pip install 'hlorewrite[{extra}]'"

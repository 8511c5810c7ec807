"""The class of the pass expose-collectives, by its public path. The bridge to JAX defines this class, which needs
jax."""

from typing import Any

from hlorewrite.passmanager.registry import find_pass


def __getattr__(name: str) -> Any:
    """``ExposeCollectives``, looked up among the registered passes.

    Example:
      >>> from hlorewrite.passes.expose_collectives import ExposeCollectives
      >>> ExposeCollectives.name
      'expose-collectives'
    """
    if name == "ExposeCollectives":
        return find_pass("expose-collectives")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

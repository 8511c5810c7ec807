"""Protection from miscompilations in XLA on GPU.

Its pass ``while-loop-all-reduce-code-motion`` accepts four forms of program that it then gets wrong
(``hlo.xla_versions``). In XLA 0.10.1 to 0.11.2 an everyday one is among them, the gradient of an embedding accumulated
over micro-batches (openxla/xla#49143, fixed by openxla/xla#49182); the others are in every release so far. After
``comm-shift`` the pass has nothing left to gain, so a rewritten step is compiled without it.
"""

from hlorewrite.hlo.published_flags import users_flags
from hlorewrite.hlo.xla_hazards import CODE_MOTION as PASS
from hlorewrite.hlo.xla_hazards import GPU_PLATFORMS, MISCOMPILATIONS

FLAG = "xla_disable_hlo_passes"


def affected(version: tuple[int, ...], platform: str) -> bool:
    """Whether XLA of a jaxlib version miscompiles on a platform.

    Args:
      version: the version of jaxlib, such as ``(0, 10, 2)``.
      platform: ``cpu``, ``gpu``, ``cuda`` or ``rocm``.

    Example:
      >>> affected((0, 10, 2), "gpu"), affected((0, 10, 2), "cpu"), affected((0, 12, 0), "gpu")
      (True, False, True)
    """
    return platform in GPU_PLATFORMS and any(form.affects(version) for form in MISCOMPILATIONS.values())


def options(version: tuple[int, ...], platform: str, already_disabled: str = "") -> dict[str, str | bool | int]:
    """Compiler options that switch the pass off where it is wrong.

    Args:
      version: the version of jaxlib.
      platform: the platform of the compilation.
      already_disabled: passes the user has disabled for this compilation, comma-separated; they stay so. Without any,
        those of ``XLA_FLAGS`` do.

    Returns:
      Options for one compilation; empty if XLA is right.

    Example:
      >>> options((0, 11, 0), "cuda", "cse")
      {'xla_disable_hlo_passes': 'cse,while-loop-all-reduce-code-motion'}
    """
    return without_pass(PASS, already_disabled) if affected(version, platform) else {}


def without_pass(name: str, already_disabled: str = "") -> dict[str, str | bool | int]:
    """Compiler options that switch a pass of XLA off, and those that are off already.

    Args:
      name: the name of the pass.
      already_disabled: as for ``options``.

    Example:
      >>> without_pass("autotuner", "cse")
      {'xla_disable_hlo_passes': 'cse,autotuner'}
    """
    given = already_disabled or users_flags().get(FLAG, "")
    names = [each for each in given.split(",") if each]
    return {FLAG: ",".join(dict.fromkeys([*names, name]))}

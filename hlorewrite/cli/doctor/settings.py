"""Environment variables that change what hlorewrite, JAX and XLA do, and what each of those that are set does."""

from collections.abc import Mapping

from hlorewrite.cli.doctor.diagnosis import Diagnosis
from hlorewrite.hlo.published_flags import users_flags

_OFF = ("0", "false", "off", "no")
KNOWN: Mapping[str, str] = {
    "HLOREWRITE": "0 switches off the decorators, patch_jit and exec",
    "HLOREWRITE_TRACEBACK": "errors end with a traceback instead of one line",
    "HLOREWRITE_TOKEN": "the secret that authenticates the processes of a job",
    "HLOREWRITE_EXEC": "set by `hlorewrite exec` for the program that it starts",
    "XLA_FLAGS": "XLA's own flags, for every compilation",
    "JAX_PLATFORMS": "the platforms that JAX looks for",
    "JAX_NUM_CPU_DEVICES": "how many CPU devices JAX makes",
    "JAX_ENABLE_X64": "64-bit numbers; modules written with and without it differ",
    "JAX_DISABLE_JIT": "nothing is compiled, so nothing is rewritten",
    "JAX_USE_SHARDY_PARTITIONER": "which partitioner lowers shardings",
    "JAX_COMPILATION_CACHE_DIR": "where JAX keeps compiled programs; rewritten ones get separate keys",
    "JAX_TRACEBACK_FILTERING": "which frames of errors JAX shows",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "the share of a GPU's memory that steps may take; budgets are computed from it",
    "XLA_CLIENT_MEM_FRACTION": "the share of a GPU's memory that steps may take; budgets are computed from it",
    "CUDA_VISIBLE_DEVICES": "the GPUs that this process may use",
    "XDG_CACHE_HOME": "the folder of the cache of `hlorewrite tune`",
}
"""Variable -> what it does."""
_STOPPING = {"HLOREWRITE": (True, "unset HLOREWRITE"), "JAX_DISABLE_JIT": (False, "unset JAX_DISABLE_JIT"),
             "JAX_USE_SHARDY_PARTITIONER": (True, "unset JAX_USE_SHARDY_PARTITIONER; only Shardy is tested")}
"""Variable -> (True if a value that means no is reported, False if one that means yes is; and what to do)."""
_SECRET = ("HLOREWRITE_TOKEN", "HLOREWRITE_EXEC")


def settings(environment: Mapping[str, str]) -> list[Diagnosis]:
    """The variables that are set and have an effect, and a line that names the other ones.

    Args:
      environment: the environment of this process.
    """
    others = sorted(name for name in environment if name.startswith("JAX_") and name not in KNOWN)
    given = [name for name in (*KNOWN, *others) if environment.get(name, "").strip()]
    found = [_setting(name, environment[name].strip()) for name in given]
    unset = ", ".join(name for name in KNOWN if name not in given and name not in _SECRET)
    return [*found, Diagnosis("settings", "not set", "ok", unset)]


def _setting(name: str, value: str) -> Diagnosis:
    does = KNOWN.get(name, "a setting of JAX")
    shown = "..." if name in _SECRET else value
    if name == "XLA_FLAGS":
        flags = users_flags({name: value})
        does = f"{len(flags)} of XLA's flags, for every compilation" if flags else "it contains no valid XLA flag"
        return Diagnosis("settings", name, "ok" if flags else "note", f"{shown}: {does}",
                       "" if flags else "write flags as --xla_name=value, separated by spaces")
    stops, fix = _STOPPING.get(name, (False, ""))
    matters = bool(fix) and (value.lower() in _OFF) == stops
    return Diagnosis("settings", name, "note" if matters else "ok", f"{shown}: {does}", fix if matters else "")

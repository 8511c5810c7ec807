"""Compiles a module with a dump of every pass, in a separate process, so that an abort of XLA ends only that process.
"""

import os
import subprocess
import sys
from pathlib import Path

from hlorewrite.errors import InputError
from hlorewrite.hlo.dump_chain import HOW_TO_DUMP
from hlorewrite.ir import Module, parse
from hlorewrite.jaxbridge.xla.compile_for import check_count, compile_for, place_of
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.util.parent_process import end_with_parent

TIME_LIMIT_SECONDS = 1800
EVERY_PASS: dict[str, str | bool | int] = {
    "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": False, "xla_dump_large_constants": True,
    "xla_dump_hlo_pass_re": ".*", "xla_dump_full_hlo_config": False}
"""XLA flags with which each pass that changes a program leaves a file; the folder is passed separately."""


def compile_with_dump(module: Module, target: str, folder: Path) -> Path:
    """Compiles a module for a target and leaves what each pass of XLA made of it in a folder.

    Args:
      module: any StableHLO module.
      target: ``cpu:8``, ``h200:1x8``, ...
      folder: an empty folder.

    Returns:
      The folder of the dump, in that one.

    Raises:
      UsageError: the target has other devices than the module is for, or there is no such target.
      InputError: XLA refuses the module, aborts, or takes longer than half an hour.
    """
    check_count(parse_target(target), for_spmd(module).devices, module.name)
    source = folder / "module.mlirbc"
    with source.open("wb") as out:
        module.operation.write_bytecode(file=out)
    dumps = folder / "dump"
    dumps.mkdir()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3"}
    if target != "gpu":
        environment["JAX_PLATFORMS"] = "cpu"  # the GPUs of this machine are left alone
    try:
        done = subprocess.run([sys.executable, "-m", __name__, str(source), target, str(dumps)], capture_output=True,
                              text=True, timeout=TIME_LIMIT_SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise InputError(f"XLA takes longer than {TIME_LIMIT_SECONDS} s to compile it", location=module.name,
                         hint="dump it where it is compiled, with XLA_FLAGS=\"" + HOW_TO_DUMP + '"') from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InputError(f"XLA cannot compile it for {target} ({said[:200]})", location=module.name,
                         hint="run hlorewrite compile to see XLA's message")
    return dumps


def _compile(source: Path, target: str, dumps: Path) -> None:
    from hlorewrite.jaxbridge.xla.compile_no_codegen import compile_no_codegen

    module, where = parse(source.read_bytes(), name=str(source)), parse_target(target)
    flags = {**EVERY_PASS, "xla_dump_to": str(dumps)}
    if where.platform == "cpu":
        compile_for(module, where, xla_flags=flags)
    else:
        compile_no_codegen(module, place_of(where, module), flags=flags, dumps=dumps, every_pass=True)


if __name__ == "__main__":
    end_with_parent()
    _compile(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

"""``hlorewrite exec --capture FILE``: writes the step that a program is about to compile, and ends the program.

With it a step of real size becomes a file on a machine that could neither compile nor run it: JAX lowers for as many
CPU devices as the step needs, which allocates nothing, and the program stops before XLA sees the module.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import jax

from hlorewrite.errors import OutputError
from hlorewrite.ir import Format, emit, ir
from hlorewrite.jaxbridge.hook.patch import JitPatch
from hlorewrite.jaxbridge.step.notices import KILL_SWITCH, switched_off
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.util.write import write_file

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.step.options import StepOptions


class CapturePatch(JitPatch):
    """A patch that writes the first module it gets and ends the program; of several processes, the first writes.

    Args:
      options: the options; only ``match`` and ``frames`` are read.
      path: the file; text if it ends in ``.mlir``, otherwise MLIR bytecode.
    """

    def __init__(self, options: StepOptions, path: str) -> None:
        super().__init__(options)
        self.path = path
        self._leaving, self._before = False, _written_ns(path)

    def before_compilation(self, name: str, computation: ir.Module, platform: str, devices: Sequence[Any],
                           options: Any) -> ir.Module:
        """Writes the module and does not return; the program goes on if hlorewrite is switched off."""
        if switched_off():
            return computation
        if not self._leaving and jax.process_index() == 0:
            form = Format.TEXT if self.path.endswith(".mlir") else Format.BYTECODE
            try:
                write_file(self.path, emit(clone_of(computation, name, self.options.frames), form, debug_info=True))
            except OutputError as error:
                self._leave(1, str(error))
            self._leave(0, f"{self.path} contains {name} for {len(devices)} devices; the program ends before it is "
                           "compiled (--match NAME captures another function)")
        return self._leave(0, "")

    def _leave(self, code: int, sentence: str) -> NoReturn:
        """Ends the program by SystemExit; at once, where it catches that or runs this in another thread."""
        if sentence:
            sys.stderr.write(f"hlorewrite exec: {sentence}\n")
        again, self._leaving = self._leaving, True
        if not again and threading.current_thread() is threading.main_thread():
            raise SystemExit(code)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def end_of_program(self) -> None:
        """Ends the program with exit code 1 and the reason, if neither it nor a child has written the file."""
        if _written_ns(self.path) != self._before or jax.process_index() != 0:
            return
        match = self.options.match
        named = f" and is named {' or '.join(match)}" if isinstance(match, tuple) else ""
        why = (f"{KILL_SWITCH}=0 is set" if switched_off() else
               f"the program compiled no module for several devices that communicates{named}")
        self._leaving = True
        self._leave(1, f"{self.path} is not written: {why}")


def _written_ns(path: str) -> int:
    """When a file was written; 0 if there is none."""
    with suppress(OSError):
        return os.stat(path).st_mtime_ns
    return 0

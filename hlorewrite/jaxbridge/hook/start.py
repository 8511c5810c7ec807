"""The entry point for the shim of ``hlorewrite exec``, called once a program has imported jax."""

import atexit
import os
import sys

import jax

from hlorewrite.jaxbridge.hook.exec_run import ExecRun, from_environment
from hlorewrite.jaxbridge.hook.patch import JitPatch, activate, activated


def start() -> None:
    """Patches this process with the options of ``hlorewrite exec``, and writes the report when it ends."""
    from hlorewrite.rules.register import load_natives
    run = from_environment(os.environ)
    load_natives(run.natives)
    if run.capture:
        from hlorewrite.jaxbridge.hook.capture import CapturePatch
        capturing = activate(CapturePatch(run.options, run.capture))
        atexit.register(lambda: capturing.end_of_program() if os.getpid() == run.pid else None)
        return
    patch = activated(run.options)
    if run.report or sys.stderr.isatty():
        owner = os.getpid()
        atexit.register(lambda: _report(patch, run) if os.getpid() == owner else None)


def _report(patch: JitPatch, run: ExecRun) -> None:
    """Writes the report of the first process, and of no child that compiled nothing for several devices.

    On a terminal, one line says what was rewritten and where the report is. In a pipe, the program's output is
    unchanged.
    """
    if jax.process_index() != 0 or (not patch.records and os.getpid() != run.pid):
        return
    if run.report:
        _write_report(patch, run)
    if run.report != "-" and sys.stderr.isatty():
        from hlorewrite.jaxbridge.hook.records import records_sentence
        where = f"see {run.report}" if run.report else "--report FILE writes the reasons"
        sys.stderr.write(f"hlorewrite exec: {records_sentence(patch.records)}; {where}\n")


def _write_report(patch: JitPatch, run: ExecRun) -> None:
    from hlorewrite.jaxbridge.hook.records import steps_report
    try:
        steps_report(patch.records, str(run.options.passes), audit=run.options.audit).write(run.report)
    except Exception as error:
        sys.stderr.write(f"hlorewrite exec: {str(error).splitlines()[0]}\n")

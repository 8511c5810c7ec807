"""What the shim of ``hlorewrite exec`` calls once a program has imported jax."""

from __future__ import annotations

import atexit
import os
import sys

import jax

from hlorewrite.ir.location import Frames
from hlorewrite.jaxbridge.hook.exec_settings import ExecSettings, from_environment
from hlorewrite.jaxbridge.hook.patch import JitPatch, activated
from hlorewrite.jaxbridge.hook.settings import HookSettings


def start() -> None:
    """Patches this process by the settings of ``hlorewrite exec``; what was done is written when it ends."""
    from hlorewrite.jaxbridge.decorator.candidates import checked_keep
    from hlorewrite.planlock.files import checked_files
    from hlorewrite.rules.register import load_natives
    from hlorewrite.util.left_open import left_open
    settings = from_environment(os.environ)
    load_natives(settings.natives)
    opened = left_open(passes=settings.passes, keep=settings.keep, topology=settings.topology,
                       memory_budget=settings.memory_budget)
    patch = activated(HookSettings(settings.passes or "comm", settings.match or None, topology=settings.topology,
                                   audit=settings.audit, keep=checked_keep(settings.keep or "better"),
                                   frames=Frames(settings.skip_frames, settings.own_frames),
                                   plans=checked_files(settings.plan or None, settings.on_mismatch),
                                   memory_budget=settings.memory_budget, left_open=opened))
    if settings.report or sys.stderr.isatty():
        owner = os.getpid()
        atexit.register(lambda: _report(patch, settings) if os.getpid() == owner else None)


def _report(patch: JitPatch, settings: ExecSettings) -> None:
    """Writes the report of the first process, and of no child that compiled nothing for several devices.

    On a terminal one line says what was rewritten and where the report is; in a pipe the program's output is unchanged.
    """
    if jax.process_index() != 0 or (not patch.records and os.getpid() != settings.pid):
        return
    if settings.report:
        _write_report(patch, settings)
    if settings.report != "-" and sys.stderr.isatty():
        from hlorewrite.jaxbridge.hook.records import records_sentence
        where = f"see {settings.report}" if settings.report else "--report FILE writes the reasons"
        sys.stderr.write(f"hlorewrite exec: {records_sentence(patch.records)}; {where}\n")


def _write_report(patch: JitPatch, settings: ExecSettings) -> None:
    from hlorewrite.jaxbridge.hook.records import records_json, records_text
    from hlorewrite.jaxbridge.hook.report_page import report_page
    from hlorewrite.util.write import write_output
    text = records_text(patch.records) or f"{patch}\n"
    if settings.report == "-":
        sys.stderr.write(text)
        return
    if settings.report.endswith(".json"):
        text = records_json(patch.records)
    elif settings.report.endswith((".html", ".htm")):
        text = report_page(patch.records, settings.passes or "comm", settings.audit)
    try:
        write_output(settings.report, text.encode())
    except Exception as error:
        sys.stderr.write(f"hlorewrite exec: {str(error).splitlines()[0]}\n")

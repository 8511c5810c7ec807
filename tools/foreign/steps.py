"""What is done with one module of a suite: each step in turn, in a process that may die."""

import contextlib
import gc
import io
import json
import os
import re
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from foreign.inputs import SuiteModule
from foreign.values import without_checks, written_values

SECONDS = 120
_UNEXPECTED = ("unexpected error", "failed unexpectedly", "crashed (", "report it", "in a module of")
_TARGET = "h200:128x8"
_COMMANDS = {
    "opt -O comm": ("opt", "-O", "comm", "--allow-unregistered-dialect", "--no-reproducer", "-o", os.devnull),
    "opt -O time": ("opt", "-O", "time", f"--topology={_TARGET}", "--allow-unregistered-dialect", "--no-reproducer",
                    "-o", os.devnull),
    "trace": ("opt", "-O", "comm", f"--topology={_TARGET}", "--allow-unregistered-dialect", "--no-reproducer", "-o",
              os.devnull),
    "report": ("report", "--json"),
    "audit": ("audit", f"--target={_TARGET}"),
}


@dataclass
class ModuleOutcome:
    """What came of one module.

    Attributes:
      name: the module's.
      read: whether it can be read.
      steps: by the name of a step: ``ok``, ``refused``, ``failed`` or ``wrong``, and the sentence.
    """

    name: str
    read: bool = False
    steps: dict[str, tuple[str, str]] = field(default_factory=dict)


def run_module(module: SuiteModule, wanted: str = "") -> ModuleOutcome:
    """Runs a module through all steps, in a child of this process.

    Args:
      module: the module.
      wanted: a regular expression; only the steps that match, next to ``read``.

    Returns:
      What came of it; a step that kills the child has failed, and those after it are not run.
    """
    outcome = ModuleOutcome(module.name)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(module, writer, wanted)
    os.close(writer)
    begun = ""
    with os.fdopen(reader) as lines:
        for line in lines:
            said = json.loads(line)
            begun = said["step"]
            if "verdict" in said:
                outcome.steps[begun], begun = (said["verdict"], said["sentence"]), ""
    status = os.waitpid(child, 0)[1]
    if begun:
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(os.WEXITSTATUS(status))
        # In C++: the command says so and ends with 2. It runs the interpreter in a process of its own, and asks XLA's
        # parser only about text that it does not read itself.
        crashed = begun in ("read", "counted", "values") and ended in ("SIGABRT", "SIGSEGV", "SIGFPE")
        outcome.steps[begun] = ("refused" if crashed else "failed",
                            f"ended by {ended}" + (f" after {SECONDS} s" if ended == "SIGALRM" else ""))
    outcome.read = outcome.steps.get("read", ("", ""))[0] == "ok"
    return outcome


def _child(module: SuiteModule, writer: int, wanted: str) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # stacks that C++ prints when it dies
    with TemporaryDirectory() as folder, os.fdopen(writer, "w") as lines:
        path = Path(folder) / ("module.hlo" if module.form == "hlo" else "module.mlir")
        path.write_bytes(without_checks(module.data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
                         if b"check.expect" in module.data else module.data)
        for step, work in _steps(module, str(path)).items():
            if step != "read" and not re.search(wanted, step):
                continue
            print(json.dumps({"step": step}), file=lines, flush=True)
            signal.alarm(SECONDS)
            try:
                verdict, sentence = work()
            except Exception as error:
                verdict, sentence = "failed", f"{type(error).__name__}: {error}"[:300]
            signal.alarm(0)
            print(json.dumps({"step": step, "verdict": verdict, "sentence": sentence}), file=lines, flush=True)
            if step == "read" and verdict != "ok":
                break
    os._exit(0)


Step = Callable[[], tuple[str, str]]


def _steps(module: SuiteModule, path: str) -> dict[str, Step]:
    def command(name: str) -> Step:
        return lambda: _run(_COMMANDS[name], path)[:2]

    steps: dict[str, Step] = {"read": lambda: _read(module, path)}
    if module.form == "mlir":
        steps |= {name: command(name) for name in ("opt -O comm", "opt -O time")} | {"view": lambda: _viewed(path)}
    steps |= {"report": command("report"), "counted": lambda: _counted(module, path), "audit": command("audit")}
    if module.form == "mlir" and (b"check.expect" in module.data or b"@check." in module.data):
        steps["values"] = lambda: written_values(module.data.decode(errors="replace"))
    if module.form == "mlir":
        del steps["audit"]  # of a module that XLA would have to compile: minutes each
    return steps


def _run(words: tuple[str, ...], path: str) -> tuple[str, str, str]:
    """One command line in this process: verdict, sentence, and what it printed."""
    from hlorewrite.cli.main import guarded

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = guarded([words[0], path, *words[1:]])
        except BaseException:
            code, _ = 1, err.write(f"unexpected error: {traceback.format_exc(limit=-1)}")
    said = next((line for line in reversed(err.getvalue().splitlines()) if "error" in line), "").replace(path, "MODULE")
    unexpected = code not in (0, 2, 3) and any(words in said for words in _UNEXPECTED)
    verdict = {0: "ok", 2: "refused", 3: "wrong"}.get(code, "failed" if unexpected else "refused")
    return verdict, said.removeprefix("hlorewrite: error: "), out.getvalue()


def _viewed(path: str) -> tuple[str, str]:
    """A trace of ``opt``, shown as JSON and as a page."""
    run = f"{path}.run"
    verdict, sentence, _ = _run((*_COMMANDS["trace"], f"--trace={run}"), path)
    if verdict != "ok":
        return verdict, sentence
    verdict, sentence, printed = _run(("view", "--json"), run)
    if verdict == "ok":
        json.loads(printed, parse_constant=lambda text: 1 / 0)  # infinities are not JSON
        verdict, sentence, _ = _run(("view", "-o", f"{run}.html"), run)
    return verdict, sentence


def _read(module: SuiteModule, path: str) -> tuple[str, str]:
    from hlorewrite.cli.step.read_module import hlo_text
    from hlorewrite.errors import InputError
    from hlorewrite.ir.load import load

    try:
        if module.form == "hlo":
            hlo_text(Path(path).read_text(errors="replace"), path)
        else:
            load(path, allow_unregistered=True)
    except InputError as error:
        return "refused", str(error).replace(path, "MODULE")
    return "ok", ""


# ---- whether a count is complete


_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast")
_COMMUNICATES = re.compile(rf'\b(?:stablehlo|mhlo|sdy)\.({"|".join(_KINDS)})\b|@?"?(ragged_all_to_all)\b')
_OPCODES = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|"
                      r"collective-broadcast)(?:-start)?\(")


def _counted(module: SuiteModule, path: str) -> tuple[str, str]:
    """The report, and whether it counts or names what the text holds."""
    verdict, sentence, printed = _run(_COMMANDS["report"], path)
    if verdict != "ok":
        return verdict, sentence
    report = json.loads(printed)
    if module.form == "hlo":
        return _hlo_counted(module.data.decode(errors="replace"), report)
    return _mlir_counted(path, report)


def _mlir_counted(path: str, report: dict) -> tuple[str, str]:
    """Each kind that a function contains which can run is counted or in a remark."""
    from hlorewrite.analysis.block_frequency import never_runs
    from hlorewrite.ir.load import load
    from hlorewrite.ir.view import nested_ops
    module, held = load(path, allow_unregistered=True), set()
    for op in nested_ops(module.operation):
        found = _COMMUNICATES.match(op.name)
        if found and not never_runs(op):
            held.add(found[1])
        if op.name == "stablehlo.custom_call" and "ragged_all_to_all" in str(op.attributes["call_target_name"]):
            held.add("ragged_all_to_all")
    said = {each["kind"].replace("-", "_") for each in report["collectives"]}
    said |= {kind for kind in held for remark in report["remarks"] if kind in remark or "not called" in remark}
    said |= {"ragged_all_to_all"} if "all_to_all" in said else set()
    return ("wrong", f"does not count {', '.join(sorted(held - said))}") if held - said else ("ok", "")


def _hlo_counted(text: str, report: dict) -> tuple[str, str]:
    """The collectives of each kind are as many as XLA's own parser finds."""
    from hlorewrite.hlo.collectives import collective_kind, collectives
    from hlorewrite.hlo.parse import parse_hlo
    from hlorewrite.jaxbridge.xla import private

    try:
        printed = private.printed_hlo(text)
    except Exception:  # of jaxlib's own type: this XLA does not read what another one printed
        return "ok", "XLA's parser refuses it"
    theirs, ours = parse_hlo(printed), parse_hlo(text) if _is_own(text) else parse_hlo(printed)
    if len(_OPCODES.findall(re.sub(r'"(?:[^"\\]|\\.)*"', "", printed))) != sum(
            bool(collective_kind(one.opcode)) for each in theirs.computations.values()
            for one in each.instructions.values()):
        return "wrong", "an instruction that XLA prints is not read as a collective"
    counts = [sorted((one.kind, one.bytes, one.trips, one.groups, one.loop_depth) for one in collectives(module))
              for module in (theirs, ours)]
    if counts[0] != counts[1]:
        return "wrong", f"reads {len(counts[1])} collectives where XLA's parser reads {len(counts[0])}, or others"
    named = len(report["collectives"]) + sum("left out" in remark for remark in report["remarks"])
    return ("ok", "") if named == len(counts[0]) else ("wrong", f"names {named} of {len(counts[0])} collectives")


def _is_own(text: str) -> bool:
    from hlorewrite.errors import InputError
    from hlorewrite.hlo.parse import parse_hlo
    try:
        parse_hlo(text)
    except InputError:
        return False
    return True


_SMALL_MLIR = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %s = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>
    return %s : tensor<4xf32>
  }
}
"""
_SMALL_HLO = """HloModule m, is_scheduled=true, num_partitions=2

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p)
}
"""


def warm() -> None:
    """Runs small modules through all steps, so that what children need is loaded once."""
    import hlorewrite.jaxbridge.xla.hlo_text  # noqa: F401
    with TemporaryDirectory() as folder:
        for form, text in (("mlir", _SMALL_MLIR), ("hlo", _SMALL_HLO)):
            module = SuiteModule("warm", text.encode(), form)
            path = Path(folder) / f"module.{form}"
            path.write_text(text)
            for step, work in _steps(module, str(path)).items():
                verdict, sentence = work()
                if verdict != "ok":
                    raise SystemExit(f"{step} of a small module: {verdict}: {sentence}")
    written_values("func.func @main() {\n  %0 = stablehlo.constant dense<1> : tensor<i64>\n"
                   "  check.expect_eq_const %0, dense<1> : tensor<i64>\n  func.return\n}\n")
    gc.freeze()

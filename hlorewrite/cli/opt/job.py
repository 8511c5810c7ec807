"""One run of ``hlorewrite opt``: read, split, rewrite each part, report, and write all or nothing."""

import argparse
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.checks.translation_validation.steps import PassStages
from hlorewrite.cli.opt import decide
from hlorewrite.cli.opt.plan import OptPlan, check_plan_usage
from hlorewrite.cli.opt.reports import Reports
from hlorewrite.cli.process import stage
from hlorewrite.cost.cluster.capacity import checked_capacity
from hlorewrite.errors import HlorewriteError, PassFailed, UsageError, ValuesDiffer, did_you_mean
from hlorewrite.ir import Format, Module, detect, emit, parse, read_bytes
from hlorewrite.lockfile.tuned import options_text
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import Timings, names_of, run_passes
from hlorewrite.passmanager.named import AUTO
from hlorewrite.passmanager.reproducer import check_paths
from hlorewrite.passmanager.spec import format_pipeline, parse_pipeline
from hlorewrite.util.frames import Frames
from hlorewrite.util.progress import progress
from hlorewrite.util.write import write_output


@dataclass
class Part:
    """One module of the input.

    Attributes:
      raw: its bytes.
      first_line: the line of the file it starts on.
      output: what to write for it; None when it failed.
      error: why it failed.
    """

    raw: bytes
    first_line: int = 1
    output: bytes | None = None
    error: HlorewriteError | None = None


@dataclass
class Job:
    """One command line of ``opt``, ready to run."""

    args: argparse.Namespace
    timings: Timings = field(default_factory=Timings)
    _objects: list[dict[str, Any]] = field(default_factory=list, init=False)
    """The output of ``--json``: a decision for each module."""
    _decisions: list[tuple[str, decide.OptDecision]] = field(default_factory=list, init=False)
    """The output of ``--report``: the same, with the names of the modules."""

    def run(self) -> int:
        """Runs the command line; returns the exit code."""
        args = self.args
        raw = read_bytes(args.file)
        if args.run_reproducer:
            raw = self._open_reproducer(raw)
        auto = decide.is_auto(args.passes)
        passes = [step for text in args.passes for step in parse_pipeline("comm" if auto else text)]
        if args.run_reproducer:
            check_paths(passes, args.topology, args.file)
        if args.dump_pass_pipeline:
            print(f"Pass Manager with {len(passes)} passes:\nbuiltin.module({format_pipeline(passes)})",
                  file=sys.stderr)
        self._check_usage(raw)
        self._check_names(passes)
        check_plan_usage(args)
        reports = Reports(args, self.timings)
        parts = self._parts(raw)
        reports.open_trace(format_pipeline(passes))
        steps = len(parts) * (len(passes) + 2)
        try:
            with progress(f"rewriting {os.path.basename(self._name)}", steps, shown=not self._shows_report) as step:
                reports.step = step
                for part in parts:
                    self._process(part, passes, reports)
            code = (self._finish_verified if args.verify_diagnostics else self._finish)(parts, reports)
            reports.end_trace([part.output for part in parts if part.output is not None])  # the module is written
            if args.report and not code:
                self._write_report(AUTO if auto else format_pipeline(passes))
        finally:
            reports.close()
        if reports.trace and reports.trace.failure:
            raise reports.trace.failure
        if not passes and not code and self._only_prints:
            print(f"{self._name}: note: no pass ran; name one, such as -O comm or --pass=comm-shift "
                  "(`hlorewrite opt --list-passes` lists them)", file=sys.stderr)
        return code

    @property
    def _only_prints(self) -> bool:
        """Whether nothing but the text of the module was asked for, which is then that of the input."""
        args = self.args
        return not (args.output or args.emit != "text" or args.generic or args.explain or args.run_reproducer
                    or args.debug_info is not None or args.elide is not None or args.split_input_file
                    or args.verify_diagnostics or args.dump_pass_pipeline or args.trace is not None or args.target)

    # ---- the input

    def _open_reproducer(self, raw: bytes) -> bytes:
        from hlorewrite.passmanager.reproducer import read_reproducer
        reproducer = read_reproducer(raw.decode("utf-8", "replace"), self._name)
        if self.args.passes:
            raise UsageError("--run-reproducer and --pass cannot be used together", hint="leave one of them out")
        self.args.passes.append(reproducer.pipeline)
        for option in reproducer.options:
            name, _, value = option.removeprefix("--").partition("=")
            setattr(self.args, name.replace("-", "_"), value or True)
        return reproducer.module.encode()

    @property
    def _name(self) -> str:
        return "<stdin>" if self.args.file == "-" else self.args.file

    def _check_usage(self, raw: bytes) -> None:
        args = self.args
        binary = [flag for flag, on in (("--split-input-file", args.split_input_file),
                                        ("--verify-diagnostics", args.verify_diagnostics)) if on]
        if binary and detect(raw) is not Format.TEXT:
            raise UsageError(f"{binary[0]} works on MLIR text, and {self._name} is not", hint="leave it out")
        if args.split_input_file and args.emit not in ("text", "generic"):
            raise UsageError("--split-input-file writes text", hint="leave out --emit")
        if args.split_input_file and args.trace is not None:
            raise UsageError("--trace records one module, but --split-input-file reads several",
                             hint="leave one of them out")
        if args.elide is not None and args.emit not in ("text", "generic"):
            raise UsageError("--elide-large-constants changes text only", hint="leave it out, or write --emit=text")
        if args.elide is not None and args.elide < 0:
            raise UsageError(f"--elide-large-constants={args.elide} is not a number of elements",
                             hint="pass the number of elements of the largest constant to print in full, such as 16")
        if args.output is None and args.emit not in ("text", "generic") and sys.stdout.isatty():
            raise UsageError("a binary module is not written to a terminal", hint="name a file with -o")

    def _check_names(self, passes: list[Pass]) -> None:
        """Names that flags other than --pass refer to."""
        known = {name for step in passes for name in names_of(step)}
        for name in (*self.args.print_ir_before, *self.args.print_ir_after):
            if name not in known:
                raise UsageError(f'--print-ir: no pass "{name}" in the pipeline', hint=did_you_mean(name, known))
        if not self.args.target and (self.args.json or decide.is_auto(self.args.passes)):
            raise UsageError("-O auto and --json compare ways to compile a module for a target, but no target was "
                             "given", hint="add --target=h200:1x8, say")
        decide.check_report(self.args)
        if self.args.xla_flags and not self.args.against:
            raise UsageError("--xla-flags needs --against", hint="add --against xla --target h200:1x8, say")
        if not self.args.target and (self.args.against or self.args.keep):
            raise UsageError("--against and --keep compare for a target, but no target was given",
                             hint="add --target=h200:1x8, say")
        timed = next((step for step in passes if step.beside_compute and not getattr(step, "topology", "")), None)
        clustered = decide.named_cluster(self.args) or self.args.target == "gpu" or self.args.ignore_cost
        if timed is not None and not clustered:
            if self.args.target:
                from hlorewrite.jaxbridge.xla.target import parse_target
                parse_target(self.args.target)
            raise UsageError(f"{timed.name} decides by predicted time, and no cluster is named",
                             hint="add --topology=h200:1x8, or --target")
        if self.args.topology:
            from hlorewrite.cost.cluster.topology_file import topology
            topology(self.args.topology)

    def _parts(self, raw: bytes) -> list[Part]:
        if not self.args.split_input_file:
            return [Part(raw)]
        parts = [Part(text.encode(), first) for first, text in split_text(raw.decode("utf-8", "replace"))]
        return [part for part in parts if part.raw.strip()] or parts[:1]  # a separator may also be the last line

    # ---- one module

    def _process(self, part: Part, passes: list[Pass], reports: Reports) -> None:
        reports.begin_part(part.raw, part.first_line)
        hidden = False
        try:
            start = time.perf_counter()
            reports.step("reading")
            stage(f"{self._name}: while it was read")
            module = parse(part.raw, name=self.args.file, allow_unregistered=self.args.allow_unregistered_dialect,
                           first_line=part.first_line)
            module.frames = Frames(tuple(self.args.skip_frames), tuple(self.args.own_frames))
            self.timings.add("parse", time.perf_counter() - start)
            hidden = decide.hides_collectives(self.args, module, passes)
            part.output = self._rewrite(module, passes, reports, part.raw, hidden)
        except HlorewriteError as error:
            part.error = error
            reports.failed(error)
            if isinstance(error, PassFailed | ValuesDiffer):
                self._write_reproducer(part, decide.with_exposed(self.args, passes) if hidden else passes, error)

    def _rewrite(self, module: Module, passes: list[Pass], reports: Reports, raw: bytes, hidden: bool) -> bytes:
        args = self.args
        checks = set(args.check) - {"none"}
        original = module.clone() if checks or args.target or args.plan else None
        before = module.text() if args.diff else ""
        plan = OptPlan(args, passes, original) if args.plan and original is not None else None
        found = plan.replayed(reports.listeners) if plan else None
        decides = found is None and decide.decides(args, module, passes)
        chosen = decide.decision(args, module, passes) if decides else None
        budget = chosen.memory if chosen else self._budget(module) if found is None else None
        cluster = decide.cluster_of(args, module) if found is None else ""
        listeners = (*reports.listeners, *([plan.remarks] if plan else []))
        ctx = PassContext(listeners, ignore_cost=args.ignore_cost, topology=cluster, target=args.target,
                          memory_left=budget, explain=args.explain, compare=args.print_ir_after_change)
        if reports.trace:
            reports.trace.begin(module, raw)
        stages = PassStages() if "proof" in checks else None
        steps = chosen.passes if chosen else decide.with_exposed(args, passes) if hidden else passes
        if reports.trace and chosen and chosen.comparison:
            reports.trace.decided(chosen.comparison.as_json(), format_pipeline(steps))
        changed = found is None and self._run_passes(module, steps, ctx, reports, stages)
        module = module if found is None else found
        undecided = found is None and (chosen is None or chosen.comparison is None)
        if undecided and (left := decide.what_was_not_done(args, hidden, changed, ctx)):
            sys.stderr.write(f"{module.name}: {left}\n")
        reports.step("checking the result" if checks else "writing")
        stage(f"{self._name}: while it was written")
        if original is not None and stages is not None:
            self._prove(stages, original, module, reports)
        if original is not None and "interp" in checks:
            self._check_values(original, module)
        if chosen is not None and original is not None:
            module = self._decided(original, module, chosen)
        elif original is not None and args.target and found is None:
            self._compared(original, module, budget)
        if plan is not None and found is None:
            plan.write(module, changed and module is not original, budget)
        start = time.perf_counter()
        if args.diff:
            reports.diff(before, module.text(), module.name)
        shown = self._shows_report and args.output is None
        output = b"" if shown else emit(module, self._format(), debug_info=args.debug_info, elide_over=args.elide)
        self.timings.add("write", time.perf_counter() - start)
        return output

    def _budget(self, module: Module) -> int | None:
        """What passes may spend of a device's memory."""
        budget = self.args.memory_budget
        if budget is None:
            return None
        if budget != "auto":
            checked_capacity(budget, decide.named_cluster(self.args), module.name)
            return budget
        if not self.args.target:
            raise UsageError("--memory-budget=auto compiles the input for its devices, but no target was given",
                             hint="add --target=h200:1x8, say")
        from hlorewrite.jaxbridge.baseline.memory_grant import granted
        from hlorewrite.jaxbridge.xla.compile_for import place_of
        from hlorewrite.jaxbridge.xla.target import parse_target
        place = place_of(parse_target(self.args.target), module)
        grant = granted(budget, module, place, place.topology)
        sys.stderr.write(f"{module.name}: {grant.text}\n")
        return grant.bytes

    def _run_passes(self, module: Module, passes: list[Pass], ctx: PassContext, reports: Reports,
                    stages: PassStages | None) -> bool:
        """Runs the passes; returns whether the module changed."""
        stage(f"{self._name}: in a pass of {format_pipeline(passes)}")
        try:
            observers = [*reports.observers, *([stages] if stages is not None else [])]
            changed = run_passes(module, passes, ctx, observers=observers, timings=self.timings)
        except HlorewriteError:
            reports.collect(ctx)
            raise
        reports.collect(ctx)
        if self.args.explain:
            reports.explain(ctx, module)
        return changed

    @property
    def _shows_report(self) -> bool:
        return bool(self.args.diff or self.args.explain or self.args.json)

    def _format(self) -> Format:
        return Format.GENERIC if self.args.generic and self.args.emit == "text" else Format(self.args.emit)

    def _decided(self, original: Module, module: Module, chosen: decide.OptDecision) -> Module:
        """The result, or the input where that is as good under XLA alone; says which, and why."""
        if self.args.json:
            self._objects.append(chosen.as_json(original, self.args.target))
        self._decisions.append((original.name, chosen))
        if chosen.comparison is None:
            return module
        if self.args.against:
            sys.stderr.write(f"{chosen.comparison.text(times=True)}\n")
        if not chosen.kept:
            sys.stderr.write(f"{module.name}: {chosen.comparison.sentence}; --keep=always writes the result\n")
        elif not self.args.against:
            sys.stderr.write(f"{module.name}: {chosen.comparison.sentence}\n")
        if options := chosen.comparison.options:
            sys.stderr.write(f"{module.name}: compile it with {options_text(options)}; "
                             "a module cannot store XLA options\n")
        return module if chosen.kept else original

    def _write_report(self, pipeline: str) -> None:
        from hlorewrite.jaxbridge.hook.records import CompiledStep, steps_report
        steps = [CompiledStep.decided(name, made.report) for name, made in self._decisions]
        steps_report(steps, pipeline).write(self.args.report)

    def _compared(self, original: Module, module: Module, budget: int | None) -> None:
        """Shows the result next to XLA alone, where it is written in any case."""
        if not self.args.against:
            return
        from hlorewrite.jaxbridge.baseline.comparison import compared_modules
        start = time.perf_counter()
        comparison = compared_modules(original, module, self.args.target, budget=budget,
                                      best=self.args.xla_flags == "best")
        self.timings.add("against XLA", time.perf_counter() - start)
        if comparison is not None:
            sys.stderr.write(f"{comparison.text(times=True)}\n")

    def _prove(self, stages: PassStages, original: Module, module: Module, reports: Reports) -> None:
        start = time.perf_counter()
        answer = str(stages.validate(original, module))
        self.timings.add("proof", time.perf_counter() - start)
        sys.stderr.write(f"{module.name}: {answer}\n")
        if reports.trace:
            reports.trace.manifest["proof"] = answer

    def _check_values(self, original: Module, module: Module) -> None:
        from hlorewrite.checks.reference.worker import check_in_subprocess
        start = time.perf_counter()
        report = check_in_subprocess(original, module, seed=self.args.seed, tolerance=self.args.tol)
        self.timings.add("check", time.perf_counter() - start)
        sys.stderr.write(report.table())
        report.raise_if_different(module.name)

    def _write_reproducer(self, part: Part, passes: list[Pass], error: HlorewriteError) -> None:
        if self.args.verify_diagnostics or not passes:
            return
        if detect(part.raw) is Format.TEXT:
            text = part.raw.decode("utf-8", "replace")
        else:
            text = parse(part.raw, name=self.args.file).text(debug_info=True)
        note = write_reproducer(self.args, text, format_pipeline(passes))
        if note:
            error.hint = f"{error.hint}; {note}" if error.hint else note

    # ---- the end

    def _finish(self, parts: list[Part], reports: Reports) -> int:
        reports.flush()
        errors = [part.error for part in parts if part.error]
        for error in errors[:-1]:
            print(f"hlorewrite: error: {error}", file=sys.stderr)
        if errors:
            raise errors[-1]
        self._write(parts)
        return 0

    def _finish_verified(self, parts: list[Part], reports: Reports) -> int:
        mismatches = reports.mismatches(self._name)
        reports.flush(remarks=False)
        if mismatches:
            for line in mismatches[:-1]:
                print(f"hlorewrite: error: {line}", file=sys.stderr)
            raise HlorewriteError(mismatches[-1], hint="change the program or its expected-... comments")
        self._write(parts)
        return 0

    def _write(self, parts: list[Part]) -> None:
        outputs = [part.output for part in parts if part.output is not None]
        if self.args.json:
            print(json.dumps(self._objects[0] if len(self._objects) == 1 else self._objects, indent=2))
        if self._shows_report and self.args.output is None:
            return
        write_output(self.args.output or "-", f"{SEPARATOR}\n".encode().join(outputs))


def write_reproducer(args: argparse.Namespace, text: str, pipeline: str) -> str:
    """Writes a reproducer to the path that the command line names.

    Args:
      args: the command line of ``opt``.
      text: the module.
      pipeline: the passes.

    Returns:
      How to run it; empty when none was wanted, it would overwrite the input, or the folder is not writable.
    """
    from hlorewrite.passmanager.reproducer import Reproducer
    path = args.reproducer
    if args.no_reproducer or args.run_reproducer:
        return ""
    if os.path.exists(path) and os.path.exists(args.file) and os.path.samefile(path, args.file):
        return ""
    cluster = decide.named_cluster(args)
    options = (*(["--ignore-cost"] if args.ignore_cost else []), *([f"--topology={cluster}"] if cluster else []))
    try:
        write_output(path, Reproducer(text, pipeline, options).text().encode())
    except HlorewriteError:
        return ""  # the error that led here is what counts
    code = "".join([*(f"--load={file} " for file in args.load), *(f"--natives={each} " for each in args.natives)])
    return f"the reproducer is {path}: hlorewrite opt {code}--run-reproducer {path}"


def reproduce_crash(words: list[str]) -> str:
    """Writes a reproducer for a process that died in a pass, from its command line.

    Args:
      words: the command line after ``opt``.

    Returns:
      How to run it; empty when there is none.
    """
    from hlorewrite.cli.opt.arguments import add_arguments, prepare
    from hlorewrite.cli.parser import Parser
    parser = Parser(prog="hlorewrite opt", allow_abbrev=False)
    add_arguments(parser)
    args = parser.parse_args(prepare(words))
    if not args.passes or args.file == "-" or detect(raw := read_bytes(args.file)) is not Format.TEXT:
        return ""
    passes = [step for text in args.passes for step in parse_pipeline(text)]
    return write_reproducer(args, raw.decode("utf-8", "replace"), format_pipeline(passes))


# ---- ``--split-input-file``: several modules in one file, divided by ``// -----`` lines


SEPARATOR = "// -----"
_LINE = re.compile(r"^\s*// -----\s*$")


def split_text(text: str) -> list[tuple[int, str]]:
    """The parts of a file, each with the line it starts on.

    Args:
      text: the whole file.

    Returns:
      (first line, text) of each part; one part when there is no separator.

    Example:
      >>> split_text("a\\n// -----\\nb\\n")
      [(1, 'a\\n'), (3, 'b\\n')]
    """
    parts: list[tuple[int, list[str]]] = [(1, [])]
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if _LINE.match(line):
            parts.append((number + 1, []))
        else:
            parts[-1][1].append(line)
    return [(first, "".join(lines)) for first, lines in parts]

"""``hlorewrite.patch_jit``: rewrites every module that communicates, before JAX passes it to the compiler."""

from __future__ import annotations

import fnmatch
import functools
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from jaxlib import version as jaxlib_version

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import BRANCHES, COLLECTIVES, ir
from hlorewrite.ir.location import outer_function
from hlorewrite.jaxbridge.hook.records import CompiledStep, records_table
from hlorewrite.jaxbridge.processes.notes import one_line
from hlorewrite.jaxbridge.step.notices import KILL_SWITCH, HlorewriteWarning, switched_off, users_level
from hlorewrite.jaxbridge.step.options import PATCH_JIT, Match, PatchKeywords, StepOptions, documented
from hlorewrite.jaxbridge.xla import miscompile_workarounds, private
from hlorewrite.jaxbridge.xla.own_compilations import is_own_compilation, own_compilation

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.choose.planned import MadeStep
    from hlorewrite.jaxbridge.step.options import Passes
    from hlorewrite.jaxbridge.step.report import RewriteReport
    from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet

_OFF = f"{KILL_SWITCH}=0 is set"
_PREFIXES = ("jit_", "pmap_")
_PMAPPED = "jit__fun"
"""How ``jax.pmap`` names every module: the function's own name is only in the locations of its ops."""
ABSENT_S = 10.0
"""How long to wait for a process that was never seen to patch JAX: it may run without hlorewrite."""

_MANUAL = frozenset(COLLECTIVES)
# An auto-sharded module with none of these, or with one of the second kind, is not a train step: setting up arrays,
# adding two of them, a norm for a log line.
_CONTROL = frozenset({"stablehlo.while", *BRANCHES})
_WORK = frozenset({"stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce", "stablehlo.gather",
                   "stablehlo.scatter", "stablehlo.reduce_window"})
_SEVERAL = 2
Patch = TypeVar("Patch", bound="JitPatch")


class JitPatch:
    """An active patch; ``records`` lists its rewrites. Use it as a context manager, or end it with ``undo``.

    Args:
      options: passes and policies.
    """

    def __init__(self, options: StepOptions) -> None:
        self.options = options
        self._records: list[CompiledStep] = []
        self._said: set[str] = set()

    def __enter__(self) -> JitPatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.undo()

    def __str__(self) -> str:
        return records_table(self.records) if self._records else "no module that communicates was compiled"

    @property
    def records(self) -> tuple[CompiledStep, ...]:
        """The modules that may communicate, in the order JAX compiled them."""
        return tuple(self._records)

    def undo(self) -> None:
        """Ends the patch. Functions that were compiled while it was active stay rewritten."""
        _HOOK.remove(self)

    def before_compilation(self, name: str, computation: ir.Module, platform: str, devices: Sequence[Any],
                           options: Any) -> ir.Module:
        """The module to compile in place of the one that JAX passes; compile options are changed in place.

        Args:
          name: the module's name.
          computation: JAX's module, which stays as it is.
          platform: ``cpu``, ``cuda``, ...
          devices: the devices it will run on, of all processes.
          options: XLA's compile options of this compilation.
        """
        start = time.perf_counter()
        members = sorted({device.process_index for device in devices})
        alone = len(members) < 2 or self.options.audit
        decide = self._alone if alone else functools.partial(self._together, members)
        rewritten, report, failure = decide(name, computation, platform, devices, options)
        raises = self.options.on_error == "raise" or (self.options.on_error is None and alone)
        if failure and raises and not switched_off():
            raise HlorewriteError(failure, location=name, hint='use on_error="fallback" to compile the original')
        if failure:
            self._say(f"{name} is compiled unrewritten: {failure}")
        outcome = ("original" if failure else "audited" if self.options.audit
                   else "unchanged" if rewritten is None else "rewritten")
        self._records.append(CompiledStep(name, outcome, failure, time.perf_counter() - start, report))
        if report is not None and outcome in ("rewritten", "unchanged"):
            private.add_xla_flags(options, _with_disabled(report.compiler_options, platform, options))
        return computation if rewritten is None or outcome != "rewritten" else rewritten

    def _alone(self, name: str, computation: ir.Module, platform: str, devices: Sequence[Any],
               options: Any) -> tuple[ir.Module | None, RewriteReport | None, str]:
        """The rewritten module, the report, and why there is none, where this process decides."""
        if switched_off():
            return None, None, _OFF
        try:
            from hlorewrite.jaxbridge.choose.planned import made_step
            return *self._parsed(name, computation, made_step(computation, name, self.options,
                                                              _place(platform, devices, options))), ""
        except Exception as error:  # the user's program must go on, whatever is wrong in here
            self._raise_final(error)
            return None, None, one_line(error)

    def _raise_final(self, error: Exception | None) -> None:
        """Raises where a plan does not fit and the program is to stop then."""
        from hlorewrite.lockfile.files import is_final
        if error is not None and is_final(error):
            raise error

    def _together(self, members: Sequence[int], name: str, computation: ir.Module, platform: str,
                  devices: Sequence[Any], options: Any) -> tuple[ir.Module | None, RewriteReport | None, str]:
        """The same where several processes decide."""
        from hlorewrite.jaxbridge.choose.planned import joint_step
        from hlorewrite.jaxbridge.processes.agreement import Patience
        from hlorewrite.jaxbridge.processes.consensus import STEPS, agreement_of
        timeout_s = self.options.timeout_s
        try:
            watch = STEPS.begin(timeout_s, leave_errors=True)
            agreement = agreement_of(f"hook/{name}", members, Patience(timeout_s, ABSENT_S), watch)
        except Exception as error:  # nothing was said to any process: without this one, all run the original
            return None, None, one_line(error)
        if agreement is None:  # JAX says why a process without devices of a module cannot compile it
            return None, None, "none of its devices belongs to this process"
        if switched_off():
            agreement.refuse(_OFF)
            return None, None, _OFF
        outcome = joint_step(agreement, computation, name, self.options, _place(platform, devices, options))
        self._raise_final(outcome.error)
        if outcome.made is None:
            return None, None, outcome.why
        rewritten, report = self._parsed(name, computation, outcome.made)
        return (None if outcome.why else rewritten), report, outcome.why

    def _parsed(self, name: str, computation: ir.Module, step: MadeStep) -> tuple[ir.Module | None, RewriteReport]:
        """The rewritten module in the context of JAX's, None if nothing was rewritten; says what the user reads."""
        from hlorewrite.jaxbridge.choose.chosen_step import NOTHING_TO_REWRITE
        made, sentences = step
        for sentence in sentences:
            if sentence != NOTHING_TO_REWRITE:
                self._say(f"{name}: {sentence}")
        return None if made.bytecode is None else ir.Module.parse(made.bytecode, computation.context), made.report

    def _say(self, sentence: str) -> None:
        """Warns once."""
        if sentence not in self._said:
            self._said.add(sentence)
            warnings.warn(sentence, HlorewriteWarning, stacklevel=users_level())


class _CompileHook:
    """Replaces JAX's function while any patch is active; the innermost patch that wants a module gets
    it. JAX has one compiler, so a process has one of these.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._patches: tuple[JitPatch, ...] = ()
        self._installed: tuple[Callable[..., Any], Callable[..., Any]] | None = None  # ours, and what it stands for
        self._thread = threading.local()
        self._announced = False
        self._said: set[str] = set()

    @contextmanager
    def scope(self, patch: JitPatch) -> Iterator[None]:
        """Activates a patch for what this thread compiles in the body; JAX's function stays wrapped from then on."""
        self.install()
        before = getattr(self._thread, "scopes", ())
        self._thread.scopes = (*before, patch)
        try:
            yield
        finally:
            self._thread.scopes = before

    def install(self) -> str:
        """Wraps JAX's function unless that is done already; returns why that is impossible, or nothing."""
        with self._lock:
            current = private.compile_function()
            if current is None:
                return "this version of JAX does not compile as hlorewrite expects"
            if self._installed is None or current is not self._installed[0]:
                self._installed = self._around(current), current
                private.set_compile_function(self._installed[0])
        return ""

    def add(self, patch: JitPatch) -> str:
        """Activates a patch; returns why that is impossible, or nothing."""
        why_not = self.install()
        if not why_not:
            with self._lock:
                self._patches = (*self._patches, patch)
        return why_not

    def remove(self, patch: JitPatch) -> None:
        """Ends a patch. After the last patch, JAX gets its function back; if another tool has wrapped ours, ours stays
        and does nothing.
        """
        with self._lock:
            self._patches = tuple(other for other in self._patches if other is not patch)
            if not self._patches and self._installed and private.compile_function() is self._installed[0]:
                private.set_compile_function(self._installed[1])
                self._installed = None

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function with the parameters of JAX's, which compiles a module or what a patch makes of it."""
        def compile_or_get_cached(backend: Any, computation: ir.Module, devices: Any, compile_options: Any,
                                  host_callbacks: Any, executable_devices: Any, *rest: Any, **named: Any) -> Any:
            inside = getattr(self._thread, "compiling", False)  # another tool may call one of ours inside another
            active = self._patches or getattr(self._thread, "scopes", ())
            if devices.size > 1 and active and not inside and not is_own_compilation():
                computation = self._patched(computation, devices, compile_options, str(backend.platform))
            elif active and not self._announced:
                with suppress(Exception):  # a store that does not answer is met when a step is decided on
                    self._announce()
            self._thread.compiling = True
            try:
                return original(backend, computation, devices, compile_options, host_callbacks, executable_devices,
                                *rest, **named)
            finally:
                self._thread.compiling = inside
        return compile_or_get_cached

    def _patched(self, computation: ir.Module, devices: Any, options: Any, platform: str) -> ir.Module:
        inner: tuple[JitPatch, ...] = getattr(self._thread, "scopes", ())
        try:
            if not self._announced:
                self._announce()
            name = step_name(computation)
            patch = next((p for p in reversed((*self._patches, *inner)) if matches(p.options.match, name)), None)
            if patch is None or not may_communicate(computation):
                return computation
        except Exception as error:  # a predicate of the user, or a store that does not answer
            self._say(f"a module is compiled unrewritten: {one_line(error)}")
            return computation
        with own_compilation():
            return patch.before_compilation(name, computation, platform, list(devices.flat), options)

    def _say(self, sentence: str) -> None:
        """Warns once in a process."""
        if sentence not in self._said:
            self._said.add(sentence)
            warnings.warn(sentence, HlorewriteWarning, stacklevel=users_level())

    def _announce(self) -> None:
        """Lets the other processes see that this one patches JAX: from now on they watch each other."""
        if private.distributed_client() is None or not self._patches:
            return
        from hlorewrite.jaxbridge.processes.consensus import STEPS
        STEPS.begin(self._patches[-1].options.timeout_s, leave_errors=True)
        self._announced = True


def _place(platform: str, devices: Sequence[Any], options: Any) -> DeviceSet:
    from hlorewrite.jaxbridge.xla.compile_no_codegen import device_set
    return device_set(platform, devices, private.xla_flags(options))


def _with_disabled(more: Mapping[str, Any], platform: str, options: Any) -> Mapping[str, Any]:
    """XLA options for one compilation; XLA passes that it leaves out already stay out."""
    if miscompile_workarounds.FLAG not in more:
        return more
    return {**more, **miscompile_workarounds.options(jaxlib_version.__version_info__, platform,
                                                     private.disabled_passes(options))}


_HOOK = _CompileHook()


@documented(PATCH_JIT)
def patch_jit(passes: Passes | None = None, match: Match = None, **options: Unpack[PatchKeywords]) -> JitPatch:
    """Rewrites the communication of everything that is jitted from now on, by any library.

    ``jax.jit``, ``pjit``, ``flax.nnx.jit``, ``equinox.filter_jit`` and everything that trainers build on them pass
    their modules to one function of JAX, and the patch wraps that function. Modules for one device, and those without
    communication, pass through unchanged. Functions compiled earlier stay as they are. In a program of several
    processes, patch in each. The processes compare their modules before they compile, and all compile the original if
    one of them differs.

    Args:
      {options}

    Returns:
      The patch, which is already active: a context manager with ``records`` and ``undo``.

    Raises:
      UsageError: an unknown option, pass or policy.

    Example:
      >>> with patch_jit("comm", match="train_step") as patch:
      ...     pass
      >>> patch.records
      ()
    """
    return activated(StepOptions.of(PATCH_JIT, {"passes": passes, "match": match, **options}))


def matches(match: Match, name: str) -> bool:
    """Whether a module's name fits a choice.

    Args:
      match: the choice.
      name: the name of a module: ``jit_`` or ``pmap_``, and the function's name.

    Example:
      >>> matches("train_step", "jit_train_step"), matches(["eval*", "*_step"], "jit_train_step")
      (True, True)
      >>> matches(lambda name: "eval" in name, "jit_train_step"), matches(None, "jit_f")
      (False, True)
    """
    if match is None:
        return True
    if callable(match):
        return bool(match(name))
    patterns = [match] if isinstance(match, str) else match
    own = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
    return any(fnmatch.fnmatchcase(shown, pattern) for pattern in patterns for shown in (name, own))


def step_name(computation: ir.Module) -> str:
    """The name of a module: JAX's name, or ``pmap_`` with the user's function if JAX names it after its own.

    Args:
      computation: the module that JAX compiles.
    """
    name = ir.StringAttr(computation.operation.attributes["sym_name"]).value
    if name != _PMAPPED:
        return name
    names = Counter(outer_function(op.location) for op in _on_every_device(computation))
    del names[""]
    if not names:
        return name
    # A function and those defined in it: the outermost is the user's.
    found = min(names, key=lambda each: (each.count("."), -names[each]))
    return f"pmap_{found.rpartition('.')[2]}"


def _on_every_device(computation: ir.Module) -> Iterator[ir.Operation]:
    """The ops that run on every device, without those in loops and calls: frames of others go on to the caller."""
    main = next(op for op in computation.body.operations
                if ir.StringAttr(op.operation.attributes["sym_name"]).value == "main")
    for op in main.operation.regions[0].blocks[0].operations:
        if op.operation.name == "sdy.manual_computation":
            yield from (inner.operation for inner in op.operation.regions[0].blocks[0].operations)


def scoped(patch: JitPatch) -> AbstractContextManager[None]:
    """A context in which what this thread compiles goes through a patch."""
    return _HOOK.scope(patch)


def activated(options: StepOptions) -> JitPatch:
    """A patch with options that were checked before."""
    return activate(JitPatch(options))


def activate(patch: Patch) -> Patch:
    """Activates a patch, and returns it; warns if this JAX has no place for it."""
    why_not = _HOOK.add(patch)
    if why_not:
        warnings.warn(f"patch_jit does nothing: {why_not}", HlorewriteWarning, stacklevel=users_level())
    return patch


def may_communicate(module: ir.Module) -> bool:
    """Whether a module contains a collective, or enough work that XLA's partitioner could insert one.

    Args:
      module: what JAX is about to compile for several devices; it is read only, and no further than to the answer.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> may_communicate(parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }").mlir)
      False
    """
    found, work = False, 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found, work
        name = op.name
        work += name in _WORK
        found = name in _MANUAL or name in _CONTROL or work >= _SEVERAL
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found

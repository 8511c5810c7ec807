"""What the first passes of a pipeline leave, kept for a shorter pipeline, so that they do not run twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.step.report import Rewritten, RunRecorder, ShorterRun
from hlorewrite.passmanager.base import Pass

Finish = Callable[[Module, Sequence[Pass], bool, RunRecorder], Rewritten]
"""Makes a result of a module, the passes that ran, whether they changed it, and what they recorded."""


@dataclass
class AfterFirstPasses:
    """Observes a run and keeps a copy of the module after its first passes.

    Attributes:
      passes: the first passes.
      recorder: of the whole run.
    """

    passes: tuple[Pass, ...]
    recorder: RunRecorder
    _module: Module | None = field(default=None, init=False)
    _recorded: RunRecorder = field(default_factory=RunRecorder, init=False)
    _number: int = field(default=0, init=False)
    _changed: bool = field(default=False, init=False)
    _changed_later: bool = field(default=False, init=False)

    def before(self, pass_: Pass, module: Module) -> None:
        """Nothing is kept of the module before a pass."""

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """Keeps a copy after the last of the first passes."""
        if self._module is not None:
            self._changed_later |= changed
            return
        self._number += 1
        self._changed |= changed
        if self._number == len(self.passes):
            self._module = module.clone()
            self._recorded = replace(self.recorder, remarks=dict(self.recorder.remarks))

    def run(self, finish: Finish, whole: Rewritten) -> ShorterRun | None:
        """What a run of the first passes alone would give; None where nothing was kept.

        Args:
          finish: makes a result.
          whole: the result of the whole run; where the later passes changed nothing, its bytes are those of both.
        """
        module = self._module
        if module is None:
            return None

        def made() -> Rewritten:
            first = finish(module, self.passes, self._changed, self._recorded)
            return first if self._changed_later else replace(first, bytecode=whole.bytecode)

        return ShorterRun(self.passes, made)

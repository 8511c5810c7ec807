"""What the passes of a step changed, found when a page shows it: recording it beforehand would cost every step time."""

from dataclasses import dataclass, field
from functools import cached_property

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import parse
from hlorewrite.jaxbridge.step.no_rewrite import put_away
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.changes import ChangeRecorder, PassChange
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.util.frames import USUAL_FRAMES, Frames


@dataclass(frozen=True)
class ChangesOnDemand:
    """The passes that made a module, and what they ran on; they run again when their changes are first asked for.

    Attributes:
      module: what they ran on, serialized.
      name: the name of the module, for messages.
      passes: the passes.
      topology: the cluster that passes estimate times for.
      memory: bytes that they may spend; None for their own limits.
      frames: whose frames of call stacks are the user's.

    Example:
      >>> ChangesOnDemand(b"func.func @main() { return }", "empty", ()).found
      ()
    """

    module: bytes = field(repr=False)
    name: str
    passes: tuple[Pass, ...]
    topology: str = ""
    memory: int | None = None
    frames: Frames = USUAL_FRAMES

    @cached_property
    def found(self) -> tuple[PassChange, ...]:
        """What each pass that changed something did; if a pass fails now, why there is no more."""
        module, recorder = parse(self.module, name=self.name), ChangeRecorder()
        module.frames = self.frames
        ctx = PassContext((recorder,), topology=self.topology, memory_left=self.memory)
        put_away(ctx.view(module))
        try:
            run_passes(module, self.passes, ctx, observers=(recorder,))
        except HlorewriteError as error:  # the rest of the page counts more
            return (*recorder.changes, PassChange.unknown_of(format_pipeline(self.passes), error.what))
        return tuple(recorder.changes)

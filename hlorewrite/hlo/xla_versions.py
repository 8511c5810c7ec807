"""Releases of XLA that miscompile some programs, and the pass of XLA at fault in each."""

from dataclasses import dataclass

CODE_MOTION = "while-loop-all-reduce-code-motion"
"""The pass that moves all-reduces out of loops; always on for GPU."""
GPU_PLATFORMS = ("gpu", "cuda", "rocm")


@dataclass(frozen=True)
class Miscompilation:
    """A form of program that XLA on GPU gets wrong.

    Attributes:
      form: its short name.
      what: what the program does.
      wrong: what XLA makes of it.
      first: first jaxlib release with the fault; None when it is in every release since the pass exists.
      last: last jaxlib release with the fault; None when the newest source read still has it.
      source: where the fault is documented.
    """

    form: str
    what: str
    wrong: str
    first: tuple[int, int, int] | None
    last: tuple[int, int, int] | None
    source: str

    def affects(self, version: tuple[int, ...]) -> bool:
        """Whether a release of jaxlib has the fault.

        Example:
          >>> MISCOMPILATIONS["X"].affects((0, 10, 2)), MISCOMPILATIONS["X"].affects((0, 12, 0))
          (True, False)
        """
        version = tuple(version[:3])
        return (self.first is None or version >= self.first) and (self.last is None or version <= self.last)

    @property
    def versions(self) -> str:
        """The affected releases in words.

        Example:
          >>> MISCOMPILATIONS["X"].versions, MISCOMPILATIONS["U3"].versions
          ('jaxlib 0.10.1 to 0.11.2', 'every jaxlib up to 0.11.2 and, as far as its source is known, later ones')
        """
        first = ".".join(map(str, self.first)) if self.first else None
        last = ".".join(map(str, self.last)) if self.last else None
        if first and last:
            return f"jaxlib {first} to {last}"
        since = f"jaxlib {first} to 0.11.2" if first else "every jaxlib up to 0.11.2"
        return f"{since} and, as far as its source is known, later ones"


_PASS_SOURCE = "xla/service/while_loop_all_reduce_code_motion.cc"
MISCOMPILATIONS = {each.form: each for each in (
    Miscompilation("X", "a loop scatters into its accumulator, selected by a predicate that differs between devices, "
                   "and all-reduces the result",
                   "the all-reduce leaves the loop and the select stays: the deselected devices keep only their last "
                   "iteration", (0, 10, 1), (0, 11, 2), "openxla/xla#49143, fixed by openxla/xla#49182"),
    Miscompilation("W", "a loop scatters into its accumulator and all-reduces accumulator and updates together",
                   "the all-reduce leaves the loop, so the accumulator is no longer added up in every iteration",
                   (0, 10, 1), None, _PASS_SOURCE),
    Miscompilation("U2", "a loop accumulates a reduced value under a select whose predicate differs between devices",
                   "outside the loop, the all-reduce also adds the contributions of the deselected devices", None, None,
                   _PASS_SOURCE),
    Miscompilation("U3", "a loop accumulates a reduced value, and its condition reads the accumulator",
                   "the all-reduce leaves the loop, so the condition sees only the sums of one device", None, None,
                   f"{_PASS_SOURCE}, TODO(b/276505779)"),
)}
"""The known forms, by name."""

"""The pass interface, and the context of a running pass.

A pass is a frozen dataclass: its fields are its options, its docstring's first line is its help, and ``str`` of it is
the text that makes it again, ``name{option=value}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Self

from hlorewrite.ir import Diagnostic, Editor, Module, View, ir
from hlorewrite.passmanager.options import options_from_text, options_to_text
from hlorewrite.rules.listener import Explanation, Listener, Remark, RewriteRecord, RuleStatistics
from hlorewrite.rules.remark_subject import RemarkSubject, RemarkSubjects


@dataclass(frozen=True)
class Pass:
    """Base of every pass; fields of a subclass are its options.

    Types an option can have: ``bool``, ``int``, ``float``, ``str``, ``Size`` (bytes, ``8GiB``), an ``enum.Enum``, a
    ``Literal``, a tuple of these, each also ``| None``. A line about each option belongs into the ``Attributes``
    section of the docstring; ``hlorewrite help PASS`` shows it.

    Example:
      >>> @dataclass(frozen=True)
      ... class Halve(Pass):
      ...     "Halves something."
      ...     name = "halve"
      ...     at_most: int = 3
      >>> str(Halve()), str(Halve(at_most=5))
      ('halve', 'halve{at-most=5}')
      >>> Halve.from_options({"at-most": "7"})
      Halve(at_most=7)
    """

    name: ClassVar[str]
    changes_signature: ClassVar[bool] = False
    """Whether the pass may change the type or attributes of public functions; other passes fail the signature check."""
    changes_shardings: ClassVar[bool] = False
    """Whether the pass may change the shardings of arguments and results of public functions, and which result takes
    the buffer of a donated argument; global types and all other attributes are checked as for any pass."""
    by_mesh: ClassVar[bool] = False
    """Whether the pass sees a program of several meshes mesh by mesh, each as one SPMD module with its loop over
    micro-batches; other passes see each fragment by itself."""
    across_meshes: ClassVar[bool] = False
    """Whether such a pass merges reductions, so that sums of two meshes may be sent first and reduced once."""
    before_partitioner: ClassVar[bool] = False
    """Whether the pass changes the shardings by which XLA partitions a module, so it finds nothing afterwards."""
    beside_compute: ClassVar[bool] = False
    """Whether the pass moves communication to where compute hides it: it helps only if both run at the same time, and
    is judged by times on a cluster."""
    xla_options: ClassVar[Mapping[str, str | bool | int]] = {}
    """XLA options, without dashes, that a module must be compiled with after the pass; the decorators set them."""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place.

        Args:
          module: the module; ``module.mlir`` may be replaced by another module of the same context.
          ctx: where remarks, rewrites and counts go, and what the user asked for.

        Returns:
          Whether the module changed. A pass that finds nothing to do leaves it byte for byte and returns False.

        Raises:
          HlorewriteError: the pass cannot work on this module; the sentence says why.
        """
        raise NotImplementedError

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Makes the pass from the text of its options.

        Args:
          options: option name (dashes or underscores) to text.

        Returns:
          The pass.

        Raises:
          UsageError: an option is unknown, missing, or its text is not of its type.
        """
        return cls(**options_from_text(cls, options, f'pass "{cls.name}"'))

    def __str__(self) -> str:
        options = options_to_text(self)
        return f"{self.name}{{{options}}}" if options else self.name


@dataclass
class PassContext:
    """The context of a running pass; it is itself a ``Listener``, so it can be passed to a rewrite driver.

    Attributes:
      listeners: called with remarks, rewrites and rule statistics.
      ignore_cost: apply rules also where their ``cost`` checks say that it does not pay. ``legal`` always holds.
      topology: the name or file of the cluster to estimate times for; by default that of ``target``; empty means none
        was named.
      target: what the module is compiled for, such as ``h200:1x8``; empty means it is not known.
      memory_left: bytes a device may still spend on what passes keep for longer: local sums, gathered values, fused
        buffers; None leaves each pass its own limit.
      memory_taken: bytes that passes have taken of it, or would have where there is no limit.
      memory_refused: whether a pass left something as it was for lack of memory, also within its own limit.
      solver_effort: deterministic seconds that the solver may take for the plans of a pass; None for its own limit.
      explain: the rule to explain; empty means none. Passes that run it report its best partial match as
        ``explanation``.
      compare: whether it must be known exactly if a pass changed the module (costs a comparison of texts for
        passes that cannot say so).
      counters: what passes counted, by (pass, name).
      explanations: what was reported about the rule to explain.
      diagnostics: warnings and remarks of MLIR's own passes.
      pass_name: the pass that runs now.
    """

    listeners: tuple[Listener, ...] = ()
    _: KW_ONLY
    ignore_cost: bool = False
    topology: str = ""
    target: str = ""
    memory_left: int | None = None
    memory_taken: int = 0
    memory_refused: bool = False
    solver_effort: float | None = None
    explain: str = ""
    compare: bool = False
    counters: dict[tuple[str, str], int] = field(default_factory=dict)
    explanations: list[Explanation] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    pass_name: str = ""
    _view: View | None = None
    _subjects: RemarkSubjects | None = None

    def __post_init__(self) -> None:
        if self.target and not self.topology:
            from hlorewrite.cost.cluster.topology_file import cluster_of_target
            self.topology = cluster_of_target(self.target)

    @property
    def wants_text(self) -> bool:
        """Whether a listener asks for the text of rewrites."""
        return any(listener.wants_text for listener in self.listeners)

    @property
    def wants_missed(self) -> bool:
        """Whether a listener asks for ``missed`` remarks."""
        return any(listener.wants_missed for listener in self.listeners)

    @property
    def wants_mismatches(self) -> bool:
        """Whether a listener asks for ``missed`` remarks of rules."""
        return any(listener.wants_mismatches for listener in self.listeners)

    def remark(self, remark: Remark) -> None:
        """Emits one sentence about one place in the program."""
        for listener in self.listeners:
            listener.remark(remark)

    def rewrite(self, record: RewriteRecord) -> None:
        """Records one applied rewrite, with its text when ``wants_text``."""
        for listener in self.listeners:
            listener.rewrite(record)

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Reports what rules did in this pass; reports of several passes add up."""
        for listener in self.listeners:
            listener.statistics(rules)

    def explanation(self, explanation: Explanation) -> None:
        """Reports the best partial match of the rule the user asked about."""
        self.explanations.append(explanation)

    def take_memory(self, size: int) -> bool:
        """Takes bytes from what is left of the run's memory; returns whether they were there.

        Example:
          >>> ctx = PassContext(memory_left=100)
          >>> ctx.take_memory(80), ctx.take_memory(80), ctx.memory_left
          (True, False, 20)
        """
        if self.memory_left is not None:
            if size > self.memory_left:
                self.memory_refused = True
                return False
            self.memory_left -= max(size, 0)
        self.memory_taken += max(size, 0)
        return True

    def count(self, what: str, amount: int = 1) -> None:
        """Adds to a counter of the running pass, shown by ``--stats``."""
        key = (self.pass_name, what)
        self.counters[key] = self.counters.get(key, 0) + amount

    def view(self, module: Module) -> View:
        """The indexed view of the module, kept from pass to pass while every edit goes through its editor."""
        if self._view is None or self._view.module is not module:
            self._view = View(module)
        return self._view

    def editor(self, module: Module, rule: str = "") -> Editor:
        """An editor of the module that keeps ``view`` up to date.

        Args:
          module: the module of the running pass.
          rule: the rule or pass that makes the ops; the pass's by default.
        """
        return Editor(self.view(module), rule or self.pass_name)

    @property
    def wants_remarks(self) -> bool:
        """Whether a remark would be heard, or is wanted as an explanation."""
        return bool(self.listeners or self.explain)

    def subject(self, view: View, op: ir.Operation) -> RemarkSubject:
        """The subject of a remark about an op: the user's line, the parameter, the tensor's type; empty if nothing
        listens.

        Args:
          view: the view that the pass edits the module through.
          op: the op.
        """
        return self._subjects_of(view).of(op) if self.wants_remarks else RemarkSubject("")

    def accumulator(self, view: View, value: ir.Value) -> str:
        """The path of the argument that a value represents, if the step only adds to it; empty otherwise."""
        return self._subjects_of(view).accumulator(value)

    def _subjects_of(self, view: View) -> RemarkSubjects:
        if self._subjects is None or self._subjects.view is not view:
            self._subjects = RemarkSubjects(view)
        return self._subjects

    def forget_view(self) -> None:
        """Drops the view: the module was changed by other means than an editor."""
        self._view = None

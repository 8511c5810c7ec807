"""The pass ``split-stages``: from a train step with stage marks to a program of several meshes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from hlorewrite.analysis.groups import list_groups
from hlorewrite.analysis.loops import in_each_iteration
from hlorewrite.errors import InputError, UsageError, did_you_mean
from hlorewrite.ir import Editor, Loop, Module, View, inline_calls, ir, passmanager, users
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.programs import is_program
from hlorewrite.pipelines.passes.split_stages import meshes, stage_assignment, sums
from hlorewrite.pipelines.passes.split_stages.auto.choose import DEFAULT_TOPOLOGY, StageSearch, choose_stages, mark_cuts
from hlorewrite.pipelines.passes.split_stages.auto.cut_graph import whole_step
from hlorewrite.pipelines.passes.split_stages.branches import write_branches_as_choices
from hlorewrite.pipelines.passes.split_stages.emit import write_program
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.moved_values import moved_values
from hlorewrite.pipelines.passes.split_stages.plan import PlannedFragment, StagePlan, make_plan
from hlorewrite.pipelines.passes.split_stages.remat import keep_what_was_sent
from hlorewrite.pipelines.passes.split_stages.shardings import read_shardings
from hlorewrite.pipelines.passes.split_stages.stacks.cut_layers import cut_layer_loops
from hlorewrite.pipelines.passes.split_stages.stacks.cut_stacks import cut_stacks
from hlorewrite.pipelines.passes.split_stages.stacks.derived_parts import row_range
from hlorewrite.pipelines.passes.split_stages.step import (
    TrainStep,
    cut_along_the_loop,
    mark_of,
    marks_to_barriers,
    read_step,
    refuse_effects,
)
from hlorewrite.pipelines.schedules import SCHEDULES
from hlorewrite.rules.listener import Remark
from hlorewrite.util.sizes import format_bytes

CUSTOM = "custom"


@dataclass(frozen=True)
class SplitStages(Pass):
    """Splits a train step at its stage marks into a program of fragments on several meshes.

    The step is an ordinary one: a loop over micro-batches that holds ``hlorewrite.stage`` marks, and an update after
    it.

    Attributes:
      meshes: shape of each mesh, such as "(8x1),(4x2)", sizes in the order of the step's mesh axes.
      schedule: the schedule the program is made for; it decides which mesh runs which stage, and whether backwards are
        split into two halves. "custom" for your own one: then set mesh-of.
      microbatches: how many micro-batches the loop must run; 0 accepts any number.
      mesh_of: the mesh of each stage, for placements no schedule has.
      split_backward: whether backwards come in two halves, where the schedule does not say.
      shared: what happens to a sum that several stages add to: "once" keeps one for each stage and adds them up after
        the loop, "every-micro-batch" adds where the step does.
      stages: "marked" at the step's marks; "auto" where the cost model says, for a step without marks.
      cuts: for a step without marks: the number of ops of the forward pass before each stage but the first, as the
        remarks of "auto" state it.
      topology: the cluster that "auto" cuts for.
    """

    name: ClassVar[str] = "split-stages"
    changes_signature: ClassVar[bool] = True
    meshes: str
    schedule: str = "1f1b"
    microbatches: int = 0
    mesh_of: tuple[int, ...] = ()
    split_backward: bool | None = None
    shared: Literal["once", "every-micro-batch"] = "once"
    stages: Literal["marked", "auto"] = "marked"
    cuts: tuple[int, ...] = ()
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Replaces the module by the program."""
        self._check(module)
        if self.stages == "auto" and not self.cuts and self._wanted_stages() > 1:
            return self.with_cuts(module, ctx).run(module, ctx)
        copy = module.clone()
        list_groups(Editor(View(copy)))  # the program does not contain the step's mesh
        step = self._read(copy, ctx)
        marks = {index: step.view.source(node.op) for node in reversed(step.body) if node.op is not None
                 for index, backward in [mark_of(node.op) or (0, True)] if not backward}
        topology = meshes.make_topology(step.view, self.meshes, self.schedule, self.mesh_of, step.stages,
                                        step.iterations, where=marks.get(step.stages - 1, step.view.source(step.loop)))
        step = self._by_part(step, ctx)
        _refuse_manual(step, topology)
        if self.split_backward is not None:
            topology = replace(topology, split_backward=self.split_backward)
        read_shardings(step, cut=any(size > 1 for shape in topology.shapes for size in shape))
        at = stage_assignment.StageAssignment(step.stages, topology.split_backward)
        self._place(step, topology, at, ctx)
        plan = make_plan(step, topology, at)
        self._check_stages(plan, marks, ctx)
        _check_arguments(plan)
        module.mlir = write_program(plan, "" if self.schedule == CUSTOM else self.schedule)
        ctx.forget_view()
        self._tell(plan, ctx)
        return True

    def _check(self, module: Module) -> None:
        """Refuses options that say nothing, and modules that are split already."""
        if self.schedule not in (*SCHEDULES, CUSTOM):
            raise UsageError(f'there is no schedule "{self.schedule}"',
                             hint=did_you_mean(self.schedule, (*SCHEDULES, CUSTOM)))
        if self.schedule == CUSTOM and not self.mesh_of:
            raise UsageError("a custom schedule does not say which mesh runs which stage", hint="set mesh-of=0,1,...")
        if is_program(module):
            raise InputError("the module is a program of several meshes already", location=module.name,
                             hint="leave split-stages out")

    def _wanted_stages(self) -> int:
        """How many stages the schedule runs on these meshes."""
        return len(self.mesh_of) or meshes.stages_of(self.schedule, len(meshes.parse_shapes(self.meshes)))

    def with_cuts(self, module: Module, ctx: PassContext) -> SplitStages:
        """This pass with the cuts that the cost model chooses.

        Args:
          module: a step without marks; it is not changed.
          ctx: where remarks go that say what is cut where.

        Returns:
          The pass.

        Raises:
          HlorewriteError: the step cannot be cut.
        """
        wanted = StageSearch(self.meshes, self.schedule, self.mesh_of, self._wanted_stages(), self.microbatches,
                             self.topology or ctx.topology)
        base = _without_calls(module.clone())

        def split(cuts: tuple[int, ...]) -> Module:
            made = module.clone()
            replace(self, cuts=cuts).run(made, PassContext())
            return made

        chosen = choose_stages(base, wanted, split)
        assumed = "" if wanted.topology else f"; chosen for {DEFAULT_TOPOLOGY} (assumed, no cluster is named)"
        for stage, (cut, source, sent) in enumerate(chosen.boundaries, start=1):
            ctx.remark(Remark("applied", self.name, f"stage {stage} begins after op {cut} of the forward pass, and "
                              f"{format_bytes(sent, 1)} cross there per micro-batch in each direction{assumed}",
                              source))
        return replace(self, cuts=chosen.cuts)

    def _place(self, step: TrainStep, topology: meshes.ProgramMeshes, at: stage_assignment.StageAssignment,
               ctx: PassContext) -> None:
        """Gives every op of the micro-batch its place, and finds out what is carried."""
        ctx.count("marks that would run again", keep_what_was_sent(step))
        step.before += stage_assignment.place_body(step, at)
        _drop_marks(step)
        stage_assignment.sink_forwards(step, at)
        sums.find_sums(step)
        if self.shared == "once":
            ctx.count("sums of several stages separated", sums.separate_sums(step, at))
        if topology.split_backward:
            stage_assignment.split_backwards(step, at)
        if self.schedule != CUSTOM and not self.mesh_of:
            sums.check_order(step, at, self.schedule, len(topology.shapes), lambda node: _source(step, node))
        sums.align_carried(step)
        if self.cuts:
            stage_assignment.check_places(step)

    def _read(self, module: Module, ctx: PassContext) -> TrainStep:
        view = View(module)
        main = view.functions.get("main")
        if main is None:
            raise InputError("the module has no main function", location=module.name, hint="lower a step with jax.jit")
        ctx.forget_view()
        inline_calls(ctx.editor(module))
        ctx.count("loops over layers cut", cut_layer_loops(View(module)))
        ctx.forget_view()
        marks_to_barriers(ctx.view(module))
        passmanager.PassManager.parse("builtin.module(cse)", module.context).run(module.operation)
        ctx.forget_view()
        if self.cuts:
            mark_cuts(module, self.cuts, self.microbatches)
        ctx.count("skipped micro-batches written as sums",
                  sums.write_skips_as_sums(ctx.view(module), ctx.editor(module)))
        ctx.forget_view()
        if self._is_whole(module):
            refuse_effects(View(module))
            return whole_step(View(module), self.microbatches)
        self._write_branches(module, ctx)
        view = View(module)
        refuse_effects(view)
        step = read_step(view, view.functions["main"])
        if self.microbatches and step.iterations != self.microbatches:
            raise InputError(f"the loop runs {step.iterations} micro-batches, not {self.microbatches}",
                             location=view.source(step.loop), hint="use the same number for both")
        return step

    def _is_whole(self, module: Module) -> bool:
        """Whether a step is one stage, without any mark."""
        return self._wanted_stages() == 1 and not any(map(mark_of, View(module).ops("stablehlo.optimization_barrier")))

    def _write_branches(self, module: Module, ctx: PassContext) -> None:
        """Writes branches of the update as choices; says which stay."""
        for op in write_branches_as_choices(ctx.view(module), ctx.editor(module)):
            said = "this branch stays one op on one mesh: it contains loops, random numbers or unknown ops"
            ctx.remark(Remark("unprofitable", self.name, said, ctx.view(module).source(op)))
        ctx.forget_view()

    def _by_part(self, step: TrainStep, ctx: PassContext) -> TrainStep:
        """The step with each stage's rows of what is stacked."""
        module = step.view.module
        cut = None if step.stages == 1 else cut_stacks(module)
        if cut is None:
            return step
        ctx.count("stacks cut", cut)
        view = View(module)
        return read_step(view, view.functions["main"])

    def _check_stages(self, plan: StagePlan, marks: dict[int, str], ctx: PassContext) -> None:
        """Says which stages compute nothing; the last one has to, since the number of stages is read from it."""
        busy = {fragment.stage for fragment in plan.body}
        for stage in set(range(plan.step.stages)) - busy:
            if stage == plan.step.stages - 1:
                raise InputError(f"stage {stage}, the last one, computes nothing", location=marks.get(stage),
                                 hint="use the result of the last mark")
            ctx.remark(Remark("unprofitable", self.name, f"stage {stage} computes nothing: values bypass it",
                              marks.get(max(stage, 1), plan.step.view.module.name)))

    def _tell(self, plan: StagePlan, ctx: PassContext) -> None:
        module = plan.step.view.module
        for node, axes in cut_along_the_loop(plan.step):
            said = f"the loop takes micro-batches from a dimension that is cut over {axes}; cut their rows instead"
            ctx.remark(Remark("unprofitable", self.name, said, _source(plan.step, node)))
        for said, node in (*unused_received_rows(plan), *moved_values(plan)):
            ctx.remark(Remark("unprofitable", self.name, said, _source(plan.step, node)))
        ctx.count("fragments", len(plan.before) + len(plan.body) + len(plan.after))
        ctx.remark(Remark("applied", self.name, f"split into {plan.step.stages} stages on "
                                                f"{len(plan.topology.shapes)} meshes, {plan.step.iterations} "
                                                "micro-batches", module.name))


def _without_calls(module: Module) -> Module:
    """A step as it is when its cuts are numbered."""
    list_groups(Editor(View(module)))
    inline_calls(Editor(View(module)))
    cut_layer_loops(View(module))
    marks_to_barriers(View(module))
    passmanager.PassManager.parse("builtin.module(cse)", module.context).run(module.operation)
    return module


def _check_arguments(plan: StagePlan) -> None:
    """Every argument has to be cut evenly on each mesh that reads it."""
    step, values = plan.step, plan.step.values
    arguments = set(step.arguments)
    for fragment in (*plan.before, *plan.body, *plan.after):
        readers = {values.find(each): node for node in reversed(fragment.members) for each in node.reads}
        for number in fragment.inputs:
            if number in arguments and number in readers:
                meshes.check_argument(plan.topology, values.types[number], values.specs[number], fragment.mesh,
                               step.argument_name(number), _source(step, readers[number]))


def _refuse_manual(step: TrainStep, topology: meshes.ProgramMeshes) -> None:
    """What is written for the devices of one mesh cannot run on meshes of other sizes."""
    manual = step.view.ops("sdy.manual_computation")
    if manual and len(set(topology.shapes)) > 1:
        raise InputError("a shard_map is for one size of mesh, and the meshes differ",
                         location=step.view.source(manual[0]),
                         hint="use equal meshes, or write this part without shard_map")


def _drop_marks(step: TrainStep) -> None:
    """Marks have done their work: their results are their operands."""
    for node in step.body:
        if mark_of(node.op) is not None:
            step.values.unite(node.results[0], node.operands[0])
    step.body[:] = [node for node in step.body if mark_of(node.op) is None]


def _source(step: TrainStep, node: StepNode) -> str:
    return step.view.source(node.op) if node.op is not None else step.view.module.name


# ---- weights of which a stage receives more than it reads


def unused_received_rows(plan: StagePlan) -> Iterator[tuple[str, StepNode]]:
    """Arguments that are sent whole to a stage that reads only some of their rows.

    Args:
      plan: the plan of a program.

    Yields: (message, an op that reads the rows), once for each argument and stage.
    """
    values = plan.step.values
    for fragment in (*plan.before, *plan.body):
        for number in fragment.inputs:
            if number not in plan.home or plan.home[number] == fragment.mesh:
                continue
            rows = ir.RankedTensorType(values.types[number]).shape[:1]
            read = _rows_read(plan, fragment, number)
            if read is not None and rows and len(read[0]) < rows[0]:
                name = plan.step.argument_name(number)
                yield (f"stage {fragment.stage} receives all {rows[0]} rows of {name} "
                       f"({format_bytes(values.bytes(number), 1)}) and reads {len(read[0])} of them; take rows by "
                       "constant indices, or mark the loop over layers with hlorewrite.stage_layers", read[1])


def _rows_read(plan: StagePlan, fragment: PlannedFragment, number: int) -> tuple[set[int], StepNode] | None:
    """The rows of a value that a fragment reads, and one of the readers; None if that may be all."""
    values = plan.step.values
    rows: set[int] = set()
    reader: StepNode | None = None
    for node in fragment.members:
        if number not in map(values.find, node.reads):
            continue
        own = _rows_of_node(node, [place for place, each in enumerate(node.operands) if values.find(each) == number])
        if own is None or number in map(values.find, node.captured):
            return None
        rows |= own
        reader = reader or node
    return None if reader is None else (rows, reader)


def _rows_of_node(node: StepNode, places: list[int]) -> set[int] | None:
    """The rows that an op reads of an operand: of a slice, or of a loop that takes a row in each iteration."""
    if node.op is None:
        return None
    taken = row_range(node.op)
    if taken is not None:
        return set(range(*taken))
    if node.name != "stablehlo.while":
        return None
    loop, rows = Loop(node.op), set[int]()
    for place in places:
        argument = loop.body.arguments[place]
        for op, number in users(argument):
            if (op.name, number) == ("stablehlo.return", place):
                continue
            if op.name != "stablehlo.dynamic_slice" or ir.RankedTensorType(op.results[0].type).shape[0] != 1:
                return None
            found = in_each_iteration(loop, op.operands[1])
            if found is None:
                return None
            last = ir.RankedTensorType(argument.type).shape[0] - 1
            rows |= {min(max(row, 0), last) for row in found}
    return rows

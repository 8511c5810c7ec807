"""A program of several meshes as each of its meshes sees it: one SPMD module per mesh.

The view of a mesh is one manual computation over all its axes: the mesh's fragments before the loop, a
``stablehlo.while`` over the micro-batches with the bodies of its fragments in the program's order, and its fragments
after the loop. So every pass for SPMD modules sees a gradient from the micro-batch where it is made to the update where
it is used, and needs to know nothing of programs.

A value from another mesh is the result of an opaque op of which only the axes of its sharding are known. A value that
is sent is the operand of such an op, so it has to be reduced by then. Marks show where each fragment begins and ends,
and its results pass an optimisation barrier; ``mesh_view_cut`` uses both to cut the view into fragments again.
"""

import math
from dataclasses import dataclass, field

from hlorewrite.analysis.mesh import Mesh, meshes
from hlorewrite.ir import Editor, Module, View, inline_calls, ir, parse, sdy, symbol_name, terminator
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, ProgramOps, Step
from hlorewrite.pipelines.mpmd.types import MeshTensor

BEGIN, END, SEND, RECEIVE = "hlorewrite.begin", "hlorewrite.end", "hlorewrite.send", "hlorewrite.receive"
NUMBER, VALUES, COPY = "hlorewrite.number", "hlorewrite.values", "hlorewrite.copy"
_CALL = "stablehlo.custom_call"
PARTS = ("before", "body", "after")


@dataclass(frozen=True)
class ProgramPosition:
    """A step of a program: its part (``before``, ``body`` or ``after``) and its position there."""

    part: str
    position: int


@dataclass
class MeshView:
    """The view of one mesh.

    Attributes:
      mesh: its name.
      local: the mesh, devices numbered as its fragments number them.
      module: the SPMD module; passes rewrite it.
      places: the fragment calls in it, in the order of their numbers in the marks.
      opaque: those of these numbers whose fragments are in the global view: the module contains only their operands and
          results.
      arguments: numbers of the program's arguments on this mesh, in the order of the module's first arguments.
      carries: positions in ``Program.carries`` of what the loop carries on this mesh, after its counter.
      results: positions in ``Program.results`` of the results on this mesh.
      loose: numbers of values that travel between meshes but whose type may still change (``sums_across``).
      loose_sends: the transfers that send such values.
    """

    mesh: str
    local: Mesh
    module: Module
    places: tuple[ProgramPosition, ...]
    opaque: frozenset[int]
    arguments: tuple[int, ...]
    carries: tuple[int, ...]
    results: tuple[int, ...]
    loose: frozenset[int] = frozenset()
    loose_sends: frozenset[ProgramPosition] = frozenset()


def local_mesh(view: View, name: str, axes: tuple[tuple[str, int], ...]) -> Mesh:
    """A mesh with its devices numbered as the fragments on it number them: from 0, as its ``sdy.mesh`` says."""
    count = math.prod(size for _, size in axes)
    stated = meshes(view).get(name)
    ids = stated.device_ids if stated is not None and sorted(stated.device_ids) == list(range(count)) else range(count)
    return Mesh(axes, tuple(ids))


def local_shape(type_: MeshTensor, mesh: Mesh) -> tuple[int, ...] | None:
    """The shape of a device's tile; None when the mesh does not divide a dimension."""
    sizes = dict(mesh.axes)
    shape = []
    for length, axes in zip(type_.shape, type_.spec, strict=True):
        count = math.prod(_part_size(axis, sizes) for axis in axes)
        if length % count:
            return None
        shape.append(length // count)
    return tuple(shape)


def _part_size(axis: str, sizes: dict[str, int]) -> int:
    name, _, part = axis.partition(":")
    return int(part.partition(")")[2]) if part else sizes[name]


def manual_body(function: ir.Operation) -> ir.Block | None:
    """The block of a fragment's manual computation; None when it does not consist of one over all axes.

    Args:
      function: a fragment.
    """
    block = function.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    if len(ops) != 2 or ops[0].name != "sdy.manual_computation":
        return None
    manual, end = ops
    if list(manual.operands) != list(block.arguments) or list(end.operands) != list(manual.results):
        return None
    named = sdy.ManualAxesAttr(manual.attributes["manual_axes"])
    names = {named[i] for i in range(len(named))}
    axes = sdy.MeshAttr(function.attributes["mesh_shape"]).axes if "mesh_shape" in function.attributes else []
    if any(sdy.MeshAxisAttr(axis).size > 1 and sdy.MeshAxisAttr(axis).name not in names for axis in axes):
        return None
    return manual.regions[0].blocks[0]


def body_of(function: ir.Operation, mesh: Mesh) -> ir.Block | None:
    """The program of one device of a fragment; None when XLA has yet to partition it."""
    body = manual_body(function)
    return function.regions[0].blocks[0] if body is None and mesh.size == 1 else body


def view_of_mesh(program: Program, ops: ProgramOps, module: Module, name: str) -> MeshView | None:
    """Builds the view of one mesh.

    Args:
      program: the program.
      ops: the handles of it.
      module: its module; it is not changed.
      name: the mesh.

    Returns:
      The view; None when the mesh runs no fragment.
    """
    built = _ViewBuilder(program, ops, module, name)
    return built.build() if built.places else None


@dataclass
class _ViewBuilder:
    """Writes the view of one mesh."""

    program: Program
    ops: ProgramOps
    source: Module
    mesh: str
    values: dict[int, ir.Value] = field(default_factory=dict)
    dummies: dict[tuple[str, ...], ir.Value] = field(default_factory=dict)
    opaque: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.functions = View(self.source).functions
        self.local = local_mesh(View(self.source), self.mesh, self.program.meshes[self.mesh].axes)
        steps = {"before": self.program.before, "body": self.program.body, "after": self.program.after}
        handles = {"before": self.ops.before, "body": self.ops.body, "after": self.ops.after}
        self.steps: list[tuple[ProgramPosition, Step, ir.Operation]] = [
            (ProgramPosition(part, i), step, op) for part in PARTS
            for i, (step, op) in enumerate(zip(steps[part], handles[part], strict=True))]
        self.places = [place for place, step, _ in self.steps
                       if isinstance(step, FragmentCall) and step.mesh == self.mesh]
        self.arguments = [n for n in self.program.arguments if self.on_mesh(n)]
        self.carries = [i for i, carry in enumerate(self.program.carries) if self.on_mesh(carry.first)]
        self.results = [i for i, n in enumerate(self.program.results) if self.on_mesh(n)]

    def on_mesh(self, number: int) -> bool:
        return self.program.types[number].mesh == self.mesh

    # ---- the frame

    def build(self) -> MeshView:
        """The whole view."""
        axes = ", ".join(f'"{name}"={size}' for name, size in self.local.axes)
        ids = "" if self.local.device_ids == tuple(range(self.local.size)) else (
            ", device_ids=[" + ", ".join(map(str, self.local.device_ids)) + "]")
        text = (f"module attributes {{mhlo.num_partitions = {self.local.size} : i32, mhlo.num_replicas = 1 : i32}} "
                f"{{ sdy.mesh @{self.mesh} = <[{axes}]{ids}> }}")
        module = parse(text, context=self.source.context)
        module.name, module.has_locations = self.source.name, True
        with module.context, self.source.operation.location:
            self._clone_helpers(module)
            self._write_main(module)
        inline_calls(Editor(View(module)))
        return MeshView(self.mesh, self.local, module, places=tuple(self.places), opaque=frozenset(self.opaque),
                        arguments=tuple(self.arguments), carries=tuple(self.carries), results=tuple(self.results))

    def _clone_helpers(self, module: Module) -> None:
        """Functions that fragments call."""
        fragments = {step.callee for _, step, _ in self.steps if isinstance(step, FragmentCall)}
        own = {symbol_name(self.ops.main), *([symbol_name(self.ops.microbatch)] if self.ops.microbatch else [])}
        for name, function in self.functions.items():
            if name not in fragments | own:
                module.mlir.body.append(function.clone().operation)

    def _write_main(self, module: Module) -> None:
        types = self.program.types
        cuts = list(dict.fromkeys(self._cut(n) for n in self._received()))
        inputs = [types[n] for n in self.arguments] + [self._dummy(cut) for cut in cuts if cut]
        outputs = [types[self.program.results[i]] for i in self.results]
        kinds = [[ir.Type.parse(each.tensor) for each in side] for side in (inputs, outputs)]
        main = ir.Operation.create("func.func", regions=1, ip=ir.InsertionPoint(module.mlir.body), attributes={
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[0], kinds[1]))})
        outer = main.regions[0].blocks.append(*kinds[0])
        listed = ["#sdy.sharding_per_value<[" + ", ".join(each.sharding for each in side) + "]>"
                  for side in (inputs, outputs)]
        names = ", ".join(f'"{name}"' for name, _ in self.local.axes)
        manual = ir.Operation.create(
            "sdy.manual_computation", results=kinds[1], operands=list(outer.arguments), regions=1,
            attributes={"in_shardings": ir.Attribute.parse(listed[0]), "out_shardings": ir.Attribute.parse(listed[1]),
                        "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{names}}}>")},
            ip=ir.InsertionPoint(outer))
        inner = manual.regions[0].blocks.append(*[self._local_type(each) for each in inputs])
        self.values.update(zip(self.arguments, inner.arguments, strict=False))
        self.dummies = dict(zip([cut for cut in cuts if cut], list(inner.arguments)[len(self.arguments):],
                                strict=True))
        self._write_block(inner)
        ir.Operation.create("sdy.return", operands=[self.values[self.program.results[i]] for i in self.results],
                            ip=ir.InsertionPoint(inner))
        ir.Operation.create("func.return", operands=list(manual.results), ip=ir.InsertionPoint(outer))

    def _received(self) -> list[int]:
        """Numbers of the values that come from elsewhere: by transfers, or out of fragments in the global view."""
        numbers = []
        for _, step, _ in self.steps:
            if not isinstance(step, FragmentCall):
                numbers += [step.result] if self.on_mesh(step.result) else []
            elif step.mesh == self.mesh and self._body(step) is None:
                numbers += step.results
        return numbers

    def _cut(self, number: int) -> tuple[str, ...]:
        """The axes a value is cut over, a part of one counted as a whole."""
        spec = self.program.types[number].spec
        return tuple(sorted({axis.partition(":")[0] for axes in spec for axis in axes}))

    def _dummy(self, cut: tuple[str, ...]) -> MeshTensor:
        """The type of an argument that differs along some axes, and stands only for it."""
        count = math.prod(dict(self.local.axes)[axis] for axis in cut)
        return MeshTensor(self.mesh, f"tensor<{count}xi8>", (count,), "i8", count, (cut,))

    def _local_type(self, type_: MeshTensor) -> ir.Type:
        shape = local_shape(type_, self.local)
        assert shape is not None, "mpmd's verifier requires tiles of equal size"
        return ir.RankedTensorType.get(list(shape), ir.Type.parse(type_.element))

    # ---- the steps

    def _write_block(self, block: ir.Block) -> None:
        self._write_steps("before", block, None)
        if self.program.iterations and (self.carries or any(place.part == "body" for place in self.places)):
            self._write_loop(block)
        self._write_steps("after", block, None)

    def _write_steps(self, part: str, block: ir.Block, counter: ir.Value | None) -> None:
        for place, step, op in self.steps:
            if place.part != part:
                continue
            with op.location:
                if not isinstance(step, FragmentCall):
                    self._write_transfer(place, step.operand, step.result, block, counter)
                elif step.mesh == self.mesh:
                    self._write_fragment(self.places.index(place), step, block, counter)

    def _write_transfer(self, place: ProgramPosition, operand: int, result: int, block: ir.Block,
                        counter: ir.Value | None) -> None:
        if self.on_mesh(operand):
            _mark(SEND, [self.values[operand]], [], block, [-1, PARTS.index(place.part), place.position])
        if self.on_mesh(result):
            self._receive([result], block, counter)

    def _receive(self, numbers: list[int] | tuple[int, ...], block: ir.Block, counter: ir.Value | None) -> None:
        for number in numbers:
            cut = self._cut(number)
            operands = [*([self.dummies[cut]] if cut else []), *([counter] if counter is not None else [])]
            made = _mark(RECEIVE, operands, [self._local_type(self.program.types[number])], block, [number])
            self.values[number] = made.results[0]

    def _body(self, step: FragmentCall) -> ir.Block | None:
        return body_of(self.functions[step.callee], self.local)

    def _write_fragment(self, number: int, step: FragmentCall, block: ir.Block, counter: ir.Value | None) -> None:
        body = self._body(step)
        given = [self.values[n] for n in step.operands]
        if body is None:
            self.opaque.add(number)
            _mark(SEND, given, [], block, [number])
            self._receive(step.results, block, counter)
            return
        _mark(BEGIN, [], [], block, [number])
        copied = self.functions[step.callee].clone().operation
        inner = manual_body(copied) or copied.regions[0].blocks[0]
        for argument, value in zip(inner.arguments, given, strict=True):
            argument.replace_all_uses_with(value)
        end = terminator(inner)
        returned = list(end.operands)
        for op in list(inner.operations):
            if op.operation != end:
                block.append(op.operation)
        if returned:
            barrier = ir.Operation.create(
                "stablehlo.optimization_barrier", results=[value.type for value in returned], operands=returned,
                attributes={VALUES: ir.DenseI64ArrayAttr.get(list(step.results))}, ip=ir.InsertionPoint(block))
            self.values.update(zip(step.results, barrier.results, strict=True))
        _mark(END, [], [], block, [number])
        copied.erase()

    def _write_loop(self, block: ir.Block) -> None:
        """The loop: its counter first, then what it carries on this mesh."""
        assert self.ops.loop is not None
        carries = [self.program.carries[i] for i in self.carries]
        with self.ops.loop.location:
            type_ = ir.RankedTensorType.get([], ir.Type.parse("ui32"))
            first = [_number(0, type_, block), *self._firsts([carry.first for carry in carries], block)]
            types = [value.type for value in first]
            loop = ir.Operation.create("stablehlo.while", results=types, operands=first, regions=2,
                                       ip=ir.InsertionPoint(block))
            condition, body = (region.blocks.append(*types) for region in loop.regions)
            bound = _number(self.program.iterations, type_, condition)
            go = ir.Operation.create(
                "stablehlo.compare", results=[ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))],
                operands=[condition.arguments[0], bound], ip=ir.InsertionPoint(condition),
                attributes={"comparison_direction": ir.Attribute.parse("#stablehlo<comparison_direction LT>"),
                            "compare_type": ir.Attribute.parse("#stablehlo<comparison_type UNSIGNED>")})
            ir.Operation.create("stablehlo.return", operands=[go.results[0]], ip=ir.InsertionPoint(condition))
            counter = body.arguments[0]
            self.values.update((n, counter) for n in self.program.indices if self.on_mesh(n))
            self.values.update(zip((carry.inside for carry in carries), list(body.arguments)[1:], strict=True))
            self._write_steps("body", body, counter)
            step = ir.Operation.create("stablehlo.add", results=[type_], operands=[counter, _number(1, type_, body)],
                                       ip=ir.InsertionPoint(body))
            ir.Operation.create("stablehlo.return", ip=ir.InsertionPoint(body),
                                operands=[step.results[0], *(self.values[carry.next] for carry in carries)])
        self.values.update(zip((carry.after for carry in carries), list(loop.results)[1:], strict=True))


    def _firsts(self, numbers: list[int], block: ir.Block) -> list[ir.Value]:
        """The initial values of carried values. If several start at one value, each but the first gets a copy, because
        their types may come to differ.
        """
        values = []
        for place, number in enumerate(numbers):
            value = self.values[number]
            if number in numbers[:place] and number not in self.arguments:
                copy = ir.Operation.create("stablehlo.optimization_barrier", results=[value.type], operands=[value],
                                           attributes={COPY: ir.UnitAttr.get()}, ip=ir.InsertionPoint(block))
                value = copy.results[0]
            values.append(value)
        return values


def _number(number: int, type_: ir.RankedTensorType, block: ir.Block) -> ir.Value:
    value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, number))
    return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value},
                               ip=ir.InsertionPoint(block)).results[0]


def _mark(target: str, operands: list[ir.Value], results: list[ir.Type], block: ir.Block,
          numbers: list[int]) -> ir.Operation:
    """An op of which passes only know that it must stay where it is."""
    return ir.Operation.create(_CALL, results=results, operands=operands, ip=ir.InsertionPoint(block), attributes={
        "call_target_name": ir.StringAttr.get(target), "has_side_effect": ir.BoolAttr.get(True),
        NUMBER: ir.DenseI64ArrayAttr.get(numbers)}).operation


def mark_of(op: ir.Operation) -> tuple[str, list[int]] | None:
    """The contents of a mark: its target and numbers; None for any other op."""
    if op.name != _CALL or NUMBER not in op.attributes:
        return None
    return ir.StringAttr(op.attributes["call_target_name"]).value, list(ir.DenseI64ArrayAttr(op.attributes[NUMBER]))

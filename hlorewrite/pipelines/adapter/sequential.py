"""Programs of several meshes for the oracle: one function on global values that runs fragment after fragment.

Micro-batches run one after the other, transfers forward values unchanged, and a fragment in manual form runs on the
devices of its own mesh. This function defines the meaning of a program; a schedule may only change the order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hlorewrite.ir import Module, ir, sdy, symbol_name
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, ProgramOps, Step, read_program_ops
from hlorewrite.pipelines.mpmd.rows import RowParts, row_parts


def sequential(module: Module) -> Module:
    """A program as one ordinary module.

    Args:
      module: the program; it is not changed.

    Returns:
      A module whose function ``@main`` takes and returns the step's global values: of a stack whose parts are arguments
      or results of the program, the whole.

    Raises:
      InputError: the module is not a program.
    """
    program, ops = read_program_ops(module)
    with module.context, ir.Location.unknown():
        return Module(_SequentialWriter(module, program, ops).write(), module.name)


@dataclass
class _SequentialWriter:
    module: Module
    program: Program
    ops: ProgramOps
    values: dict[int, ir.Value] = field(default_factory=dict)

    def write(self) -> ir.Module:
        made = ir.Module.create()
        own = {symbol_name(self.ops.main), *([symbol_name(self.ops.microbatch)] if self.ops.microbatch else [])}
        taken, given = row_parts(self.module)
        arguments, results = self.program.arguments, self.program.results
        kinds = [[self.whole(part, side) for part in parts]
                 for parts, side in ((taken, arguments), (given, results))]
        for op in self.module.mlir.body.operations:
            if op.operation.name == "func.func" and symbol_name(op.operation) not in own:
                made.body.append(_without_shardings(op.operation.clone().operation))
            elif op.operation.name == "sdy.mesh":
                made.body.append(_from_zero(op.operation.clone().operation))
        main = ir.Operation.create("func.func", regions=1, ip=ir.InsertionPoint(made.body), attributes={
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[0], kinds[1]))})
        block = main.regions[0].blocks.append(*kinds[0])
        for part, value in zip(taken, block.arguments, strict=True):
            self.values.update((arguments[place], own) for place, own in _parts(part, value, block))
        self.steps(self.program.before, block)
        if self.ops.loop is not None:
            self.loop(block)
        self.steps(self.program.after, block)
        ir.Operation.create("func.return", ip=ir.InsertionPoint(block), operands=[
            _joined([self.values[results[place]] for place in part.positions], kind, block)
            for part, kind in zip(given, kinds[1], strict=True)])
        return made

    def whole(self, part: RowParts, side: Sequence[int]) -> ir.Type:
        """The type of an argument or result of the step."""
        kind = ir.RankedTensorType(self.kind(side[part.positions[0]]))
        return ir.RankedTensorType.get([part.edges[-1], *list(kind.shape)[1:]], kind.element_type) if part.edges \
            else kind

    def kind(self, number: int) -> ir.Type:
        return ir.Type.parse(self.program.types[number].tensor)

    def steps(self, steps: Sequence[Step], block: ir.Block) -> None:
        for step in steps:
            if not isinstance(step, FragmentCall):
                self.values[step.result] = self.values[step.operand]
                continue
            called = ir.Operation.create(
                "func.call", results=[self.kind(n) for n in step.results], ip=ir.InsertionPoint(block),
                operands=[self.values[n] for n in step.operands],
                attributes={"callee": ir.FlatSymbolRefAttr.get(step.callee)})
            self.values.update(zip(step.results, called.results, strict=True))

    def loop(self, block: ir.Block) -> None:
        """The loop; its counter is carried first."""
        program = self.program
        type_ = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
        first = [_number(0, type_, block), *(self.values[carry.first] for carry in program.carries)]
        types = [value.type for value in first]
        made = ir.Operation.create("stablehlo.while", results=types, operands=first, regions=2,
                                   ip=ir.InsertionPoint(block))
        condition, body = (region.blocks.append(*types) for region in made.regions)
        go = ir.Operation.create(
            "stablehlo.compare", results=[ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))],
            operands=[condition.arguments[0], _number(program.iterations, type_, condition)],
            ip=ir.InsertionPoint(condition),
            attributes={"comparison_direction": ir.Attribute.parse("#stablehlo<comparison_direction LT>"),
                        "compare_type": ir.Attribute.parse("#stablehlo<comparison_type UNSIGNED>")})
        ir.Operation.create("stablehlo.return", operands=[go.results[0]], ip=ir.InsertionPoint(condition))
        counter = body.arguments[0]
        self.values.update((n, counter) for n in program.indices)
        self.values.update(zip((carry.inside for carry in program.carries), list(body.arguments)[1:], strict=True))
        self.steps(program.body, body)
        following = ir.Operation.create("stablehlo.add", results=[type_], operands=[counter, _number(1, type_, body)],
                                        ip=ir.InsertionPoint(body))
        ir.Operation.create("stablehlo.return", ip=ir.InsertionPoint(body), operands=[
            following.results[0], *(self.values[carry.next] for carry in program.carries)])
        self.values.update(zip((carry.after for carry in program.carries), list(made.results)[1:], strict=True))


def _parts(part: RowParts, value: ir.Value, block: ir.Block) -> Iterator[tuple[int, ir.Value]]:
    """The program's arguments, by position, that an argument of the step is."""
    if not part.edges:
        yield part.positions[0], value
        return
    type_ = ir.RankedTensorType(value.type)
    others = list(type_.shape)[1:]
    for place, (low, high) in zip(part.positions, pairwise(part.edges), strict=True):
        bounds = {"start_indices": [low, *[0] * len(others)], "limit_indices": [high, *others],
                  "strides": [1] * type_.rank}
        yield place, ir.Operation.create(
            "stablehlo.slice", results=[ir.RankedTensorType.get([high - low, *others], type_.element_type)],
            operands=[value], ip=ir.InsertionPoint(block),
            attributes={name: ir.DenseI64ArrayAttr.get(each) for name, each in bounds.items()}).results[0]


def _joined(values: Sequence[ir.Value], kind: ir.Type, block: ir.Block) -> ir.Value:
    """One result of the step from the program's."""
    if len(values) == 1:
        return values[0]
    first = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return ir.Operation.create("stablehlo.concatenate", results=[kind], operands=list(values),
                               attributes={"dimension": first}, ip=ir.InsertionPoint(block)).results[0]


def _number(number: int, type_: ir.RankedTensorType, block: ir.Block) -> ir.Value:
    value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, number))
    return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value},
                               ip=ir.InsertionPoint(block)).results[0]


def _without_shardings(function: ir.Operation) -> ir.Operation:
    """A function on global values; how they are on devices does not matter."""
    for name in ("arg_attrs", "res_attrs", "mesh_shape"):
        if name in function.attributes:
            del function.attributes[name]
    return function


def _from_zero(mesh: ir.Operation) -> ir.Operation:
    """A mesh with its devices numbered from 0, as the fragments on it number them."""
    attribute = sdy.MeshAttr(mesh.attributes["mesh"])
    ids = list(attribute.device_ids)
    if ids and sorted(ids) != list(range(len(ids))):
        mesh.attributes["mesh"] = sdy.MeshAttr.get(list(attribute.axes))
    return mesh

"""Writes a planned program: fragments, the function of one micro-batch, and the main function with its loop."""

from __future__ import annotations

from collections.abc import Sequence

from hlorewrite.ir import Module, ir, nested_ops, readable, remap, source_line
from hlorewrite.pipelines.mpmd.program import SCHEDULE, STAGE, SUMS, TASK
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, captured
from hlorewrite.pipelines.passes.split_stages.plan import PlannedFragment, StagePlan
from hlorewrite.pipelines.passes.split_stages.step import RETURNED

Key = tuple[int, int]  # value, mesh
_ORIGIN = {"before": "before", "F": "forward", "B": "backward", "I": "input_gradient", "W": "weight_gradient",
           "update": "update"}


def write_program(plan: StagePlan, schedule: str) -> ir.Module:
    """Writes the program.

    Args:
      plan: the plan.
      schedule: name of the schedule it is made for.

    Returns:
      A new module of the step's context.
    """
    module = plan.step.view.module
    with module.context, module.operation.location:
        return _StagesWriter(plan, schedule).write()


class _StagesWriter:
    """Writes one program."""

    def __init__(self, plan: StagePlan, schedule: str) -> None:
        self.plan, self.schedule = plan, schedule
        self.step, self.values, self.topology = plan.step, plan.step.values, plan.topology
        self.module = ir.Module.create()
        self.types: dict[Key, ir.Type] = {}
        self.row_of_text: dict[str, ir.Attribute] = {}
        self.index = ir.Type.parse("tensor<ui32>")
        self.texts: dict[tuple[str, int], ir.Attribute] = {}
        self.mesh_names = [ir.StringAttr(op.attributes["sym_name"]).value for op in self.step.view.ops("sdy.mesh")]

    def write(self) -> ir.Module:
        """The module: meshes, main, the micro-batch, fragments."""
        module: Module = self.step.view.module
        self.module.operation.attributes["sym_name"] = module.operation.attributes["sym_name"] \
            if "sym_name" in module.operation.attributes else ir.StringAttr.get("program")
        for mesh in range(len(self.topology.shapes)):
            ir.Operation.create("sdy.mesh", attributes={
                "sym_name": ir.StringAttr.get(self.topology.name(mesh)),
                "mesh": ir.Attribute.parse(f"#sdy.mesh{self.topology.mesh_text(mesh)}")},
                ip=ir.InsertionPoint(self.module.body))
        self.main()
        self.microbatch()
        for fragment in (*self.plan.before, *self.plan.body, *self.plan.after):
            self.fragment(fragment)
        return self.module

    # ---- types

    def type(self, number: int, mesh: int) -> ir.Type:
        """The type of a value on a mesh."""
        if (number, mesh) not in self.types:
            self.types[number, mesh] = ir.Type.parse(self.placed(number, mesh).text)
        return self.types[number, mesh]

    def placed(self, number: int, mesh: int):
        """The same as data."""
        return self.topology.place(self.values.types[number], self.values.specs[number], mesh)

    def sharding(self, number: int, mesh: int) -> ir.Attribute:
        """Attributes of a fragment's argument or result."""
        if number == self.step.counter:
            text = f"<@{self.topology.name(mesh)}, []>"
        else:
            text = self.placed(number, mesh).sharding
        if text not in self.row_of_text:
            self.row_of_text[text] = ir.DictAttr.get({"sdy.sharding": ir.Attribute.parse(f"#sdy.sharding{text}")})
        return self.row_of_text[text]

    def indexed(self, mesh: int) -> ir.Type:
        """The type of the micro-batch's index on a mesh."""
        name = self.topology.name(mesh)
        return ir.Type.parse(f'!mpmd.mesh_tensor<"{name}", tensor<ui32>, sharding=<@{name}, []>>')

    # ---- functions

    def function(self, name: str, inputs: Sequence[ir.Type], results: Sequence[ir.Type], public: bool = False,
                 **attributes: ir.Attribute) -> tuple[ir.Operation, ir.Block]:
        """An empty function at the end of the module."""
        type_ = ir.TypeAttr.get(ir.FunctionType.get(list(inputs), list(results)))
        op = ir.Operation.create("func.func", regions=1, attributes={
            "sym_name": ir.StringAttr.get(name), "function_type": type_,
            "sym_visibility": ir.StringAttr.get("public" if public else "private"), **attributes},
            ip=ir.InsertionPoint(self.module.body))
        return op, op.regions[0].blocks.append(*inputs)

    def main(self) -> None:
        """The main function."""
        plan, step = self.plan, self.step
        inputs = [self.type(number, plan.home[number]) for number in step.arguments]
        results = [self.type(self.values.find(number), mesh)
                   for number, mesh in zip(step.results, plan.results, strict=True)]
        named = {"topology": ir.Attribute.parse(self.topology.attribute_text()),
                 "arg_attrs": self.argument_attributes(), "res_attrs": self.result_attributes()}
        if self.schedule:
            named[SCHEDULE] = ir.StringAttr.get(self.schedule)
        function, block = self.function("main", inputs, results, True, **named)
        function.location = step.main.location
        known: dict[Key, ir.Value] = {(number, plan.home[number]): value
                                      for number, value in zip(step.arguments, block.arguments, strict=True)}
        body = _Body(self, block, known)
        for fragment in plan.before:
            body.call(fragment)
        self.loop(body)
        for fragment in plan.after:
            body.call(fragment)
        ir.Operation.create("func.return", operands=[body.get(self.values.find(number), mesh) for number, mesh in
                                                     zip(step.results, plan.results, strict=True)],
                            ip=ir.InsertionPoint(block))

    def loop(self, body: _Body) -> None:
        """The loop over micro-batches."""
        step, values, plan = self.step, self.values, self.plan
        firsts = [body.get(values.find(each.first), mesh)
                  for each, mesh in zip(step.carried, plan.carried, strict=True)]
        readers = self.readers()
        outer = [body.get(*key, readers.get(key)) for key in plan.outer]
        types = [each.type for each in firsts]
        loop = ir.Operation.create("mpmd.for", results=types, operands=firsts, regions=1, attributes={
            "iterations": ir.IntegerAttr.get(ir.IntegerType.get_unsigned(32), step.iterations),
            SUMS: ir.DenseBoolArrayAttr.get([each.is_sum for each in step.carried])},
            loc=step.loop.location, ip=ir.InsertionPoint(body.block))
        block = loop.regions[0].blocks.append(*types, self.index)
        with ir.InsertionPoint(block), step.loop.location:
            indices = [ir.Operation.create("mpmd.assign", results=[self.indexed(mesh)],
                                           operands=[block.arguments[len(types)]]).results[0]
                       for mesh in self.index_meshes()]
            call = ir.Operation.create("mpmd.call", results=types,
                                       operands=[*list(block.arguments)[:-1], *outer, *indices],
                                       attributes={"callee": ir.FlatSymbolRefAttr.get("microbatch")})
            ir.Operation.create("mpmd.return", operands=list(call.results))
        for each, mesh, result in zip(step.carried, plan.carried, loop.results, strict=True):
            body.known[values.find(each.after), mesh] = result

    def readers(self) -> dict[Key, ir.Location]:
        """The location of the first op on each mesh that reads a value."""
        return {(self.values.find(each), fragment.mesh): node.op.location for fragment in reversed(self.plan.body)
                for node in reversed(fragment.members) if node.op is not None for each in node.reads}

    def index_meshes(self) -> list[int]:
        """The meshes that ask for the micro-batch's index."""
        return sorted({each.mesh for each in self.plan.body if self.step.counter in each.inputs})

    def microbatch(self) -> None:
        """The function of one micro-batch."""
        step, values, plan = self.step, self.values, self.plan
        keys = [(values.find(each.inside), mesh) for each, mesh in zip(step.carried, plan.carried, strict=True)]
        types = [self.type(*key) for key in keys]
        meshes = self.index_meshes()
        inputs = [*types, *(self.type(*key) for key in plan.outer), *map(self.indexed, meshes)]
        _, block = self.function("microbatch", inputs, types,
                                 topology=ir.Attribute.parse(self.topology.attribute_text()))
        all_keys = [*keys, *plan.outer, *((step.counter, mesh) for mesh in meshes)]
        body = _Body(self, block, dict(zip(all_keys, block.arguments, strict=True)))
        for fragment in plan.body:
            body.call(fragment)
        ir.Operation.create("func.return", operands=[
            body.get(values.find(each.next), mesh) for each, mesh in zip(step.carried, plan.carried, strict=True)],
            ip=ir.InsertionPoint(block))

    def argument_attributes(self) -> ir.Attribute:
        """Attributes of the arguments of the step's main function, without shardings: those are in the types."""
        rows = self.rows("arg_attrs", len(self.step.arguments))
        for position, row in enumerate(rows):
            row.pop(RETURNED, None)
            target = row.get("tf.aliasing_output")
            if target is not None and not self.may_alias(position, ir.IntegerAttr(target).value):
                del row["tf.aliasing_output"]
                row["jax.buffer_donor"] = ir.BoolAttr.get(True)
        return ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])

    def may_alias(self, argument: int, result: int) -> bool:
        """Whether a result can take an argument's place: same mesh, same layout."""
        number, other = self.step.arguments[argument], self.values.find(self.step.results[result])
        return self.type(number, self.plan.home[number]) == self.type(other, self.plan.results[result])

    def result_attributes(self) -> ir.Attribute:
        """Those of the step's main function, without shardings."""
        return ir.ArrayAttr.get([ir.DictAttr.get(row) for row in self.rows("res_attrs", len(self.step.results))])

    def rows(self, name: str, count: int) -> list[dict[str, ir.Attribute]]:
        """Attributes of arguments or results by name."""
        attributes = self.step.main.attributes
        if name not in attributes:
            return [{} for _ in range(count)]
        return [{each.name: each.attr for each in ir.DictAttr(row) if not each.name.endswith(".sharding")}
                for row in ir.ArrayAttr(attributes[name])]

    # ---- fragments

    def fragment(self, fragment: PlannedFragment) -> None:
        """The function of a fragment."""
        values, counter = self.values, self.step.counter
        inputs = [self.index if number == counter else values.types[number] for number in fragment.inputs]
        results = [values.types[number] for number in fragment.outputs]
        mesh = ir.Attribute.parse(f"#sdy.mesh{self.topology.mesh_text(fragment.mesh)}")
        rows = [ir.ArrayAttr.get([self.sharding(number, fragment.mesh) for number in numbers])
                for numbers in (fragment.inputs, fragment.outputs)]
        _, block = self.function(fragment.name, inputs, results, mesh_shape=mesh, arg_attrs=rows[0], res_attrs=rows[1])
        made: dict[int, ir.Value] = dict(zip(fragment.inputs, block.arguments, strict=True))
        if counter in made:
            made[counter] = self.counter(made[counter], block)
        for node in fragment.members:
            self.node(node, made, block, fragment.mesh)
        ir.Operation.create("func.return", operands=[made[number] for number in fragment.outputs],
                            ip=ir.InsertionPoint(block))

    def counter(self, index: ir.Value, block: ir.Block) -> ir.Value:
        """The loop's own counter from the micro-batch's index: start + stride * index."""
        kind = self.values.types[self.step.counter]
        element = ir.RankedTensorType(kind).element_type
        with ir.InsertionPoint(block), self.step.loop.location:
            value = ir.Operation.create("stablehlo.convert", results=[kind], operands=[index]).results[0]
            for name, number, neutral in (("multiply", self.step.stride, 1), ("add", self.step.start, 0)):
                if number != neutral:
                    constant = ir.Operation.create("stablehlo.constant", results=[kind], attributes={
                        "value": ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, number))}).results[0]
                    value = ir.Operation.create(f"stablehlo.{name}", results=[kind],
                                                operands=[value, constant]).results[0]
        return value

    def node(self, node: StepNode, made: dict[int, ir.Value], block: ir.Block, mesh: int) -> None:
        """One op of a fragment."""
        values = self.values
        operands = [made[values.find(number)] for number in node.operands]
        point = ir.InsertionPoint(block)
        if node.op is None:
            kind = values.types[node.results[0]]
            where = values.locations[node.results[0]]
            if node.make == "zero":
                op = ir.Operation.create("stablehlo.constant", results=[kind], attributes={"value": _zero(kind)},
                                         loc=where, ip=point)
            else:
                op = ir.Operation.create(f"stablehlo.{node.make}", results=[kind], operands=operands, loc=where,
                                         ip=point)
        else:
            op = node.op.clone(point).operation
            for position, operand in enumerate(operands):
                op.operands[position] = operand
            if node.captured:
                remap(op, {value: made[values.number(value)] for value in _captured(node)})
            self.rename_mesh(op, mesh)
        for number, result in zip(node.results, op.results, strict=True):
            made[values.find(number)] = result

    def rename_mesh(self, op: ir.Operation, mesh: int) -> None:
        """Makes shardings inside a fragment name its own mesh."""
        if not self.mesh_names:
            return
        for inner in nested_ops(op):
            for name in list(inner.attributes) if inner.name.startswith("sdy.") or "sdy.sharding" in inner.attributes \
                    else ():
                text = str(readable(inner, name))
                new = text
                for old in self.mesh_names:
                    new = new.replace(f"<@{old}, ", f"<@{self.topology.name(mesh)}, ")
                if new != text:
                    inner.attributes[name] = ir.Attribute.parse(new)


def _captured(node: StepNode) -> list[ir.Value]:
    return captured(node.op) if node.op is not None else []


def _zero(type_: ir.Type) -> ir.Attribute:
    element = ir.RankedTensorType(type_).element_type
    if isinstance(element, ir.FloatType):
        return ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))
    if isinstance(element, ir.ComplexType):
        return ir.Attribute.parse(f"dense<(0.0, 0.0)> : {type_}")
    return ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, 0))


class _Body:
    """A function of fragment calls and transfers while it is written."""

    def __init__(self, writer: _StagesWriter, block: ir.Block, known: dict[Key, ir.Value]) -> None:
        self.writer, self.block, self.known = writer, block, known
        self.homes: dict[int, int] = {}
        for number, mesh in known:
            self.homes.setdefault(number, mesh)

    def get(self, number: int, mesh: int, reader: ir.Location | None = None) -> ir.Value:
        """A value on a mesh, sent there once when it is on another; arguments are sent where they are first read."""
        if (number, mesh) not in self.known:
            source = self.homes.get(number, self.writer.plan.mesh_of.get(number))
            if source is None:
                source = next(other for each, other in self.known if each == number)
            where = self.writer.values.locations[number]
            if reader is not None and source_line(where) == "?":
                where = reader
            op = ir.Operation.create("mpmd.transfer", results=[self.writer.type(number, mesh)], loc=where,
                                     operands=[self.known[number, source]], ip=ir.InsertionPoint(self.block))
            self.known[number, mesh] = op.results[0]
        return self.known[number, mesh]

    def call(self, fragment: PlannedFragment) -> None:
        """Calls a fragment."""
        writer = self.writer
        where = next((node.op.location for node in fragment.nodes or fragment.members if node.op is not None),
                     writer.step.main.location)
        operands = [self.get(number, fragment.mesh, where) for number in fragment.inputs]
        name = writer.topology.name(fragment.mesh)
        op = ir.Operation.create(
            "mpmd.fragment_call", results=[writer.type(number, fragment.mesh) for number in fragment.outputs],
            operands=operands, loc=where, ip=ir.InsertionPoint(self.block), attributes={
                "callee": ir.FlatSymbolRefAttr.get(fragment.name), "mesh_name": ir.StringAttr.get(name),
                "origin": ir.ArrayAttr.get([ir.Attribute.parse(f'#mpmd.user_origin<"{_ORIGIN[fragment.task]}">')]),
                TASK: ir.StringAttr.get(fragment.task),
                STAGE: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), fragment.stage)})
        for number, result in zip(fragment.outputs, op.results, strict=True):
            self.known[number, fragment.mesh] = result

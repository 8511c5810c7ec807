"""Programs of several meshes (the ``mpmd`` dialect) as plain data: values, fragment calls, transfers, and one loop.

``split-stages`` writes such programs, and ``tests/programs/two_stages.mlir`` is a small one. A program consists of:

* one named ``sdy.mesh`` for each mesh of the topology;
* ``@main``, with the attributes ``topology`` and, if it has a schedule, ``hlorewrite.schedule``. Its values are of type
  ``!mpmd.mesh_tensor``: a global tensor, its mesh, and its sharding. It contains fragment calls and transfers before
  the loop (task ``before``), at most one ``mpmd.for`` over micro-batches, and those after it (task ``update``);
* the loop, which carries accumulators, passes the micro-batch index (``mpmd.assign``), and calls one function,
  ``@microbatch``. ``hlorewrite.sums`` names the carried values that micro-batches only add to, or write one place of;
  their order does not matter;
* ``@microbatch``, with the fragment calls and transfers of one micro-batch. Tasks are ``F``, ``B``, or the halves ``I``
  and ``W``, each with ``hlorewrite.stage``. The schedule decides how micro-batches interleave;
* fragments: private functions with the attribute ``mesh_shape``, global types, and the ``sdy.sharding`` of the values
  outside. A body is in the global view, or one ``sdy.manual_computation`` over all axes after ``expose-collectives``.

A value of which each device along an axis holds its own addend has one more dimension, in front, as long as that axis.
Everything is read once; executing, simulating and counting need no MLIR handle afterwards.
"""

from dataclasses import dataclass, field
from functools import cached_property

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.errors import InputError
from hlorewrite.ir import Module, View, ir, terminator
from hlorewrite.pipelines.mpmd.types import MeshTensor, mesh_tensor, meshes_in_topology

FRAGMENT_TASKS = ("before", "F", "B", "I", "W", "update")
SCHEDULE, TASK, STAGE, SUMS = "hlorewrite.schedule", "hlorewrite.task", "hlorewrite.stage", "hlorewrite.sums"


@dataclass(frozen=True)
class FragmentCall:
    """One call of a fragment.

    Attributes:
      callee: name of the fragment's function.
      task: ``F``, ``B``, ``I`` or ``W`` in the loop, ``before`` or ``update`` around it.
      stage: the stage it belongs to.
      mesh: name of the mesh it runs on.
      operands: numbers of the values it reads.
      results: numbers of the values it makes.
      where: the source line.
    """

    callee: str
    task: str
    stage: int
    mesh: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    where: str = ""


@dataclass(frozen=True)
class Transfer:
    """A value that goes from one mesh to another.

    Attributes:
      operand: number of the value that is sent.
      result: number of what arrives.
      where: the source line.
    """

    operand: int
    result: int
    where: str = ""


Step = FragmentCall | Transfer


@dataclass(frozen=True)
class Carry:
    """A value that the loop passes from one micro-batch to the next.

    Attributes:
      first: number of its value before the loop.
      inside: its number in the loop's body.
      next: number, in the body, of the value for the next micro-batch.
      after: its number after the loop.
      is_sum: whether each micro-batch only adds to it, so that their order does not matter.
    """

    first: int
    inside: int
    next: int
    after: int
    is_sum: bool


@dataclass(frozen=True)
class Program:
    """A pipelined step.

    Attributes:
      name: the name of the module.
      schedule: name of the schedule it was made for; empty when it says nothing.
      meshes: the meshes in the topology's order, devices numbered mesh by mesh.
      types: type of each value, by number.
      arguments: numbers of the program's arguments.
      donated: the arguments whose buffers the caller gives away, by position.
      before: what runs before the loop.
      iterations: m, number of micro-batches; 0 when there is no loop.
      carries: what the loop carries.
      indices: numbers of the values that are the micro-batch's index, one for each mesh that asks.
      body: what runs for each micro-batch, in an order that respects data.
      after: what runs after the loop.
      results: numbers of the program's results.
    """

    name: str
    schedule: str
    meshes: dict[str, Mesh]
    types: tuple[MeshTensor, ...]
    arguments: tuple[int, ...]
    donated: frozenset[int]
    before: tuple[Step, ...]
    iterations: int
    carries: tuple[Carry, ...]
    indices: tuple[int, ...]
    body: tuple[Step, ...]
    after: tuple[Step, ...]
    results: tuple[int, ...]

    @cached_property
    def stages(self) -> int:
        """n, number of stages."""
        return 1 + max((step.stage for step in self.steps if isinstance(step, FragmentCall)), default=-1)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps as the text has them, the loop's body once."""
        return self.before + self.body + self.after

    @property
    def devices(self) -> int:
        """Number of devices of all meshes."""
        return sum(mesh.size for mesh in self.meshes.values())

    def mesh_of_stage(self) -> tuple[str, ...]:
        """The mesh each stage runs on, shape [stages]."""
        meshes = {step.stage: step.mesh for step in self.steps if isinstance(step, FragmentCall)}
        return tuple(meshes.get(stage, "") for stage in range(self.stages))

    def executions(self, step: Step) -> int:
        """How often one run of the program executes a step of it."""
        return self.iterations if any(step is each for each in self.body) else 1


@dataclass(frozen=True)
class ProgramOps:
    """The MLIR handles of a program, for code that rewrites it; valid until the module is edited.

    Attributes:
      main: the program's function.
      types: MLIR type of each value, by number.
      before: the ops of ``Program.before``, in its order.
      loop: the loop over micro-batches; None when there is none.
      call: the call in it.
      microbatch: the function it calls.
      indices: the ops that give each mesh the micro-batch's index.
      body: the ops of ``Program.body``.
      after: the ops of ``Program.after``.
    """

    main: ir.Operation
    types: tuple[ir.Type, ...]
    before: tuple[ir.Operation, ...]
    loop: ir.Operation | None
    call: ir.Operation | None
    microbatch: ir.Operation | None
    indices: tuple[ir.Operation, ...]
    body: tuple[ir.Operation, ...]
    after: tuple[ir.Operation, ...]


def read_program(module: Module) -> Program:
    """Reads a program.

    Args:
      module: a module in the ``mpmd`` dialect; it is not changed, and not needed afterwards.

    Returns:
      The program.

    Raises:
      InputError: the module is not a program, contains two loops, or its loop's body is not one call of a function.
    """
    return read_program_ops(module)[0]


def read_program_ops(module: Module) -> tuple[Program, ProgramOps]:
    """Reads a program together with the ops it was read from.

    Args:
      module: a module in the ``mpmd`` dialect; it is not changed.

    Returns:
      The program as data, and the handles of it.

    Raises:
      InputError: as ``read_program``.
    """
    view = View(module)
    main = view.functions.get("main")
    if main is None or "topology" not in main.attributes:
        raise InputError("the module is not a program of several meshes: its main function has no topology",
                         location=module.name, hint="make one with the pass split-stages")
    reader = _ProgramReader(view, main)
    program = reader.program()
    return program, reader.handles()


@dataclass
class _ProgramReader:
    """Numbers values as it meets them."""

    view: View
    main: ir.Operation
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    types: list[MeshTensor] = field(default_factory=list)
    kinds: list[ir.Type] = field(default_factory=list)
    read_types: dict[ir.Type, MeshTensor] = field(default_factory=dict)
    ops: dict[str, list[ir.Operation]] = field(default_factory=lambda: {"before": [], "body": [], "after": [],
                                                                        "indices": [], "call": [], "microbatch": []})
    loop: ir.Operation | None = None
    carries: list[Carry] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    body: list[Step] = field(default_factory=list)

    def program(self) -> Program:
        """The whole program."""
        name = self.view.module.name
        meshes = meshes_in_topology(self.main.attributes["topology"], name)
        block = self.main.regions[0].blocks[0]
        arguments = tuple(self.number(each) for each in block.arguments)
        before: list[Step] = []
        after: list[Step] = []
        for op in block.operations:
            if op.operation.name == "mpmd.for":
                self.read_loop(op.operation)
            elif op.operation.name != "func.return":
                late = self.loop is not None
                (after if late else before).append(self.step(op.operation))
                self.ops["after" if late else "before"].append(op.operation)
        results = tuple(self.number(each) for each in terminator(block).operands)
        said = self.main.attributes.get(SCHEDULE, None)
        count = 0 if self.loop is None else ir.IntegerAttr(self.loop.attributes["iterations"]).value
        return Program(name, "" if said is None else ir.StringAttr(said).value, meshes, types=tuple(self.types),
                       arguments=arguments, donated=self.donated(), before=tuple(before), iterations=count,
                       carries=tuple(self.carries), indices=tuple(self.indices), body=tuple(self.body),
                       after=tuple(after), results=results)

    def handles(self) -> ProgramOps:
        """The program that ``program`` read, as MLIR handles."""
        def only(name: str) -> ir.Operation | None:
            return next(iter(self.ops[name]), None)
        return ProgramOps(self.main, tuple(self.kinds), tuple(self.ops["before"]), loop=self.loop, call=only("call"),
                          microbatch=only("microbatch"), indices=tuple(self.ops["indices"]),
                          body=tuple(self.ops["body"]), after=tuple(self.ops["after"]))

    def number(self, value: ir.Value) -> int:
        """The number of a value, a new one when it has none."""
        if value not in self.numbers:
            self.numbers[value] = len(self.types)
            known = self.read_types.get(value.type)
            if known is None:
                known = self.read_types[value.type] = mesh_tensor(value.type)
            self.types.append(known)
            self.kinds.append(value.type)
        return self.numbers[value]

    def donated(self) -> frozenset[int]:
        """Arguments that are donated, by position."""
        if "arg_attrs" not in self.main.attributes:
            return frozenset()
        given = [ir.DictAttr(each) for each in ir.ArrayAttr(self.main.attributes["arg_attrs"])]
        return frozenset(i for i, each in enumerate(given) if "tf.aliasing_output" in each or
                         "jax.buffer_donor" in each)

    def step(self, op: ir.Operation) -> Step:
        """A fragment call or transfer."""
        where = self.view.source(op)
        if op.name == "mpmd.transfer":
            return Transfer(self.number(op.operands[0]), self.number(op.results[0]), where)
        if op.name != "mpmd.fragment_call":
            raise InputError(f"{op.name} is not expected here", location=where,
                             hint="a program contains fragment calls, transfers and one loop")
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        if callee not in self.view.functions:
            raise InputError(f"the fragment @{callee} is not in the module", location=where, hint="correct the program")
        task = ir.StringAttr(op.attributes[TASK]).value if TASK in op.attributes else ""
        if task not in FRAGMENT_TASKS or STAGE not in op.attributes:
            raise InputError(f"the call of @{callee} does not say its task and stage", location=where,
                             hint=f'add attributes such as {TASK} = "F" and {STAGE} = 0 : i64')
        return FragmentCall(callee, task, ir.IntegerAttr(op.attributes[STAGE]).value,
                            mesh=ir.StringAttr(op.attributes["mesh_name"]).value,
                            operands=tuple(map(self.number, op.operands)), results=tuple(map(self.number, op.results)),
                            where=where)

    def read_loop(self, op: ir.Operation) -> None:
        """The loop over micro-batches."""
        where = self.view.source(op)
        if self.loop is not None:
            raise InputError("the program has two loops", location=where, hint="a step has one loop of micro-batches")
        self.loop = op
        block = op.regions[0].blocks[0]
        call = self.bind(op, block)
        function = self.view.functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
        inner = function.regions[0].blocks[0]
        for outside, inside in zip(call.operands, inner.arguments, strict=True):
            self.numbers[inside] = self.number(outside)
        self.ops["body"] = [each.operation for each in inner.operations if each.operation.name != "func.return"]
        self.ops["call"], self.ops["microbatch"] = [call], [function]
        self.body = [self.step(each) for each in self.ops["body"]]
        for outside, inside in zip(call.results, terminator(inner).operands, strict=True):
            self.numbers[outside] = self.number(inside)
        sums = list(ir.DenseBoolArrayAttr(op.attributes[SUMS])) if SUMS in op.attributes else []
        firsts = [self.number(each) for each in op.operands]
        nexts = [self.number(each) for each in terminator(block).operands]
        for place, (first, following, result) in enumerate(zip(firsts, nexts, op.results, strict=True)):
            self.carries.append(Carry(first, self.number(block.arguments[place]), following, self.number(result),
                                      place < len(sums) and bool(sums[place])))

    def bind(self, loop: ir.Operation, block: ir.Block) -> ir.Operation:
        """Numbers the loop's own values; returns its one call."""
        calls = []
        for op in block.operations:
            if op.operation.name == "mpmd.assign":
                self.indices.append(self.number(op.operation.results[0]))
                self.ops["indices"].append(op.operation)
            elif op.operation.name == "mpmd.call":
                calls.append(op.operation)
            elif op.operation.name != "mpmd.return":
                raise InputError(f"{op.operation.name} is not expected in the loop",
                                 location=self.view.source(op.operation), hint="the loop's body is one mpmd.call")
        if len(calls) != 1 or ir.FlatSymbolRefAttr(calls[0].attributes["callee"]).value not in self.view.functions:
            raise InputError("the loop's body is not one call of a function of this module",
                             location=self.view.source(loop), hint="put the micro-batch into one function")
        return calls[0]


# ---- ops that only move, choose or convert data: results that a fragment makes again rather than keeps or receives


MOVES = frozenset(f"stablehlo.{name}" for name in (
    "constant", "iota", "broadcast_in_dim", "reshape", "transpose", "convert", "slice", "dynamic_slice", "pad",
    "concatenate", "reverse", "compare", "select", "and", "or", "not", "xor", "bitcast_convert")) | {
        "sdy.sharding_constraint"}
"""Names of the ops. Their operands are kept instead."""

__all__ = ["MOVES"]

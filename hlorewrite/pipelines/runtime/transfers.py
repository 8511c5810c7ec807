"""Transfers of a program as functions of arrays: planned programs over both meshes, permutes, or plain copies.

The choice between them:

* the same devices on both sides: XLA's own resharding;
* the same tiles at the same places: device-to-device copies within a process, between processes one permute over the
  devices of both meshes;
* anything else: the plan of ``plan.reshard``, lowered to one program over the devices of both meshes. A plan that the
  program carries (``hlorewrite.reshard``) is made again and must be the same one.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.cost.cluster.topology_file import topology as topology_of
from hlorewrite.errors import PlanError
from hlorewrite.ir import Module, View, ir
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.pipelines.mpmd.program import Program, Transfer, read_program_ops
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import PLAN, layout_of, plan_transfer, same_places
from hlorewrite.pipelines.reshard import Layout, ReshardPlan, SolverBudget, network_of, plan_reshard
from hlorewrite.pipelines.reshard.layout import ReshardMesh
from hlorewrite.pipelines.reshard.lower import lower
from hlorewrite.pipelines.reshard.order import EFFORT_OF_A_RUN
from hlorewrite.pipelines.runtime.meshes import PlacedMeshes, numpy_type
from hlorewrite.pipelines.runtime.reshard import compile_lowered, guessed_topology, stacked_sharding

Move = Callable[[Any], Sequence[Any]]


@dataclass(frozen=True)
class TransferPlan:
    """How a value gets to another mesh.

    Attributes:
      kind: ``empty``, ``same devices``, ``copy``, ``permute`` or ``plan``.
      source: type of the value that is sent.
      target: type of what arrives.
      plan: what is sent by whom, for kind ``plan``.
    """

    kind: str
    source: MeshTensor
    target: MeshTensor
    plan: ReshardPlan | None = None

    @property
    def digest(self) -> str:
        """The properties that must be equal on all processes."""
        return f"{self.kind} {self.source.text} {self.target.text} {self.plan.digest if self.plan else ''}"


@dataclass
class TransferCompiler:
    """Plans and compiles the transfers of a program; compiles equal ones only once.

    Args:
      module: the program's module.
      program: the program.
      meshes: its meshes on devices.
      topology: the cluster's servers, for plans; guessed from the devices by default.
      strategy: the strategy of transfers that carry no plan, as for ``plan_reshard``.
      tokens: whether programs over several devices return a token; see ``Fragments``.
      solver_effort: deterministic seconds that the solver may take for each plan.
    """

    module: Module
    program: Program
    meshes: PlacedMeshes
    topology: str = ""
    strategy: str = "auto"
    tokens: bool = False
    solver_effort: float = EFFORT_OF_A_RUN
    _known: dict[str, Move] = field(default_factory=dict, repr=False)
    _plans: dict[str, TransferPlan] = field(default_factory=dict, repr=False)

    @property
    def compilations(self) -> int:
        """How many different transfers there are."""
        return len(self._known)

    def plans(self) -> dict[int, TransferPlan]:
        """The plan of each transfer of the program, by position in ``program.steps``.

        Raises:
          PlanError: a plan the program carries cannot be made again.
          InputError: a value is cut in a way that JAX arrays cannot be.
        """
        view = View(self.module)
        _, ops = read_program_ops(self.module)
        steps = zip(self.program.steps, (*ops.before, *ops.body, *ops.after), strict=True)
        return {position: self._planned(step, op, view) for position, (step, op) in enumerate(steps)
                if isinstance(step, Transfer)}

    def _planned(self, step: Transfer, op: ir.Operation, view: View) -> TransferPlan:
        source, target = self.program.types[step.operand], self.program.types[step.result]
        for kind in (source, target):
            self.meshes.sharding(kind)
        said = op.attributes.get(PLAN, None)
        key = f"{source.text} {target.text} {said}"
        if key not in self._plans:
            self._plans[key] = self._followed(op, view, source, target) if said is not None else \
                self._chosen(source, target)
        return self._plans[key]

    def _followed(self, op: ir.Operation, view: View, source: MeshTensor, target: MeshTensor) -> TransferPlan:
        """The plan a transfer carries, made again."""
        said = ir.DictAttr(op.attributes[PLAN])
        digest, strategy, order = (ir.StringAttr(said[name]).value for name in ("digest", "strategy", "order"))
        planned = plan_transfer(op, view, self.topology, strategy, order, SolverBudget(self.solver_effort))
        if planned is None or isinstance(planned, str) or planned.plan.digest != digest:
            why = planned if isinstance(planned, str) else "another one comes out" if planned else "it needs none"
            raise PlanError(f"the plan of this transfer cannot be rebuilt ({why})", location=view.source(op),
                            hint="pass the topology that reshard-to-broadcast ran with, or run that pass again")
        return TransferPlan("plan", source, target, planned.plan)

    def _chosen(self, source: MeshTensor, target: MeshTensor) -> TransferPlan:
        """How a transfer without a separate plan is made."""
        have, want = self.meshes.of_mesh(source.mesh), self.meshes.of_mesh(target.mesh)
        if not prod(source.shape):
            return TransferPlan("empty", source, target)
        if have == want:
            return TransferPlan("same devices", source, target)
        grids = {name: ReshardMesh(mesh.axes, np.array(mesh.device_ids)) for name, mesh in self.program.meshes.items()}
        before, after = layout_of(source, grids), layout_of(target, grids)
        if same_places(before, after, grids[source.mesh], grids[target.mesh]):
            local = len({device.process_index for device in (*have, *want)}) == 1
            return TransferPlan("copy" if local else "permute", source, target)
        return TransferPlan("plan", source, target, self._fresh(before, after, numpy_type(source).itemsize))

    def _fresh(self, source: Layout, target: Layout, itemsize: int) -> ReshardPlan:
        """A plan for the devices as they are: a process is a host."""
        devices = self.meshes.devices
        involved = np.union1d(source.devices, target.devices).tolist()
        processes = sorted({device.process_index for device in devices.values()})
        hosts = {number: processes.index(devices[number].process_index) for number in involved}
        cluster = topology_of(self.topology or guessed_topology([devices[involved[0]]]))
        return plan_reshard(source, target, itemsize, network_of(cluster, hosts), strategy=self.strategy,
                            order="optimal", budget=SolverBudget(self.solver_effort))

    def waits(self, plan: TransferPlan) -> bool:
        """Whether a transfer is a program in which devices wait for each other."""
        return plan.kind in ("permute", "plan", "same devices")

    def compiled(self, plan: TransferPlan) -> Move:
        """A transfer as a function of the array that is sent; it returns a list with the array that arrives.

        On a process without devices of the source mesh the function is given None.
        """
        if plan.digest not in self._known:
            self._known[plan.digest] = self._compile(plan)
        return self._known[plan.digest]

    def _compile(self, plan: TransferPlan) -> Move:
        source, target = self.meshes.sharding(plan.source), self.meshes.sharding(plan.target)
        shape, dtype = plan.target.shape, numpy_type(plan.target)
        if plan.kind == "empty":
            host = np.zeros(shape, dtype)
            empty = jax.make_array_from_callback(shape, target, lambda index: host[index], dtype=dtype)
            return lambda _: (empty,)
        if plan.kind == "same devices":
            return _resharding(shape, dtype, source, target, self.tokens)
        if plan.kind == "copy":
            # What arrives may be donated; what was sent must stay.
            copied = private.device_copier(source, target, always=bool(source.device_set & target.device_set))
            return lambda array: (copied(array),)
        if plan.kind == "permute":
            devices, program, tile = _permute(self.meshes, plan, source.shard_shape(shape), dtype, self.tokens)
            return Stacked(program, devices, source, target, shape=shape, give=tile, take=tile, dtype=dtype,
                           token=self.tokens)
        assert plan.plan is not None, "kind plan has one"
        platform = "cpu" if self.meshes.platform == "cpu" else "gpu"
        lowered = lower(plan.plan, plan.source.element, platform)
        devices = tuple(self.meshes.devices[number] for number in lowered.devices)
        program = compile_lowered(lowered, dtype, devices, self.tokens)
        return Stacked(program, devices, source, target, shape=shape, give=lowered.source_tile,
                       take=lowered.destination_tile, dtype=dtype, token=self.tokens)


class Stacked:
    """Calls a program over the devices of both meshes: tiles in, tiles out, nothing copied on the way.

    Args:
      program: takes and returns tiles stacked along dimension 0.
      devices: the devices of both meshes in the program's order.
      source: sharding of the array that is sent.
      target: sharding of the array that arrives.
      shape: the shape of both.
      give: shape of a source tile.
      take: shape of a target tile.
      dtype: the dtype of both.
      token: whether the program also returns a token.
    """

    def __init__(self, program: Callable[[jax.Array], Any], devices: Sequence[Any], source: NamedSharding,
                 target: NamedSharding, *, shape: tuple[int, ...], give: tuple[int, ...], take: tuple[int, ...],
                 dtype: np.dtype, token: bool) -> None:
        self.program, self.target, self.shape, self.dtype = program, target, shape, dtype
        self.give, self.token = give, token
        self.stacked_shape, self.stacked = (len(devices) * give[0], *give[1:]), stacked_sharding(devices)
        mine = [device for device in devices if device.process_index == jax.process_index()]
        held = list(source.addressable_devices_indices_map(shape))
        # Where a device's tile is in the array, or a buffer for a device that has none; that buffer is not read.
        self.parts = [held.index(device) if device in held else jax.device_put(np.zeros(give, dtype), device)
                      for device in mine]
        wanted = list(target.addressable_devices_indices_map(shape))
        self.taken = [mine.index(device) for device in wanted]
        self.reshapes_in = tuple(source.shard_shape(shape)) != tuple(give)
        self.tile = tuple(target.shard_shape(shape))
        self.reshapes_out = self.tile != tuple(take)

    def __call__(self, array: jax.Array | None) -> tuple[jax.Array | None, ...]:
        held = () if array is None else private.single_device_arrays(array)
        parts: list[Any] = []
        for part in self.parts:
            if isinstance(part, int):
                part = held[part].reshape(self.give) if self.reshapes_in else held[part]
            parts.append(part)
        stacked = jax.make_array_from_single_device_arrays(self.stacked_shape, self.stacked, parts, dtype=self.dtype)
        moved, *token = self.program(stacked) if self.token else (self.program(stacked),)
        if not self.taken:
            return (None, *token)
        arrived = private.single_device_arrays(moved)
        tiles = [arrived[position] for position in self.taken]
        if self.reshapes_out:
            tiles = [tile.reshape(self.tile) for tile in tiles]
        return (jax.make_array_from_single_device_arrays(self.shape, self.target, tiles, dtype=self.dtype), *token)


def _permute(meshes: PlacedMeshes, plan: TransferPlan, tile: tuple[int, ...],
             dtype: np.dtype, token: bool) -> tuple[tuple[Any, ...], Callable[[jax.Array], Any], tuple[int, ...]]:
    """One permute from each place of a mesh to the same place of the other."""
    have, want = meshes.of_mesh(plan.source.mesh), meshes.of_mesh(plan.target.mesh)
    devices = tuple(sorted({*have, *want}, key=lambda device: device.id))
    pairs = [(devices.index(a), devices.index(b)) for a, b in zip(have, want, strict=True)]
    tile = tile or (1,)
    sharding = stacked_sharding(devices)
    axis = sharding.mesh.axis_names[0]
    body = jax.shard_map(lambda x: jax.lax.ppermute(x, axis, pairs), mesh=sharding.mesh, in_specs=PartitionSpec(axis),
                         out_specs=PartitionSpec(axis))
    shape = (len(devices) * tile[0], *tile[1:])
    given = jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)
    with own_compilation():
        return devices, _with_token(body, sharding, sharding, token).lower(given).compile(), tile


def _resharding(shape: tuple[int, ...], dtype: np.dtype, source: NamedSharding, target: NamedSharding,
                token: bool) -> Move:
    """XLA's own resharding on the same devices."""
    given = jax.ShapeDtypeStruct(shape, dtype, sharding=source)
    with own_compilation():
        move = _with_token(jnp.copy, source, target, token).lower(given).compile()
    return move if token else lambda array: (move(array),)


def _with_token(function: Callable[[Any], Any], source: NamedSharding, target: NamedSharding, token: bool) -> Any:
    """A jitted function, with a scalar as second result that is ready when it has run if a token is asked for."""
    if not token:
        return jax.jit(function, in_shardings=source, out_shardings=target)
    everywhere = NamedSharding(target.mesh, PartitionSpec())
    return jax.jit(lambda x: (function(x), jnp.int8(0)), in_shardings=source, out_shardings=(target, everywhere))


def transfer_names(program: Program) -> dict[int, str]:
    """A name for each transfer, by position in ``program.steps``: ``transfer N`` in the order of the text."""
    count = itertools.count()
    return {position: f"transfer {next(count)}" for position, step in enumerate(program.steps)
            if isinstance(step, Transfer)}

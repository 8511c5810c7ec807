"""Uniformity: which values are the same on every device of a group.

A value differs between devices only when something it is computed from does: a sharded input, a device id, a collective
over other groups, an op whose result is not a function of its operands. So a value is uniform exactly when no such
source is reachable backwards from it. A reduction over groups that contain ours ends the search: its result is the
same for all members. XLA computes the same per HLO value, for one axis of groups at a time, in its replication analysis
(HloReplicationAnalysis, xla/service/hlo_replication_analysis.cc), as a fixed point. Here the search is Tarjan's: each
value is visited once, and loops need no second round. The search also ends at the predicate of a loop that would
deadlock unless all members of a group ran it equally often (``equal_trips``).
"""

from dataclasses import dataclass

from hlorewrite.analysis import varying_ops
from hlorewrite.analysis.groups import Groups, groups_of, id_mode, replica_count, written_pairs
from hlorewrite.analysis.mesh import Mesh, mesh_of, meshes, shardings_of, varying_axes
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.analysis.uniform_trip_count import equal_trip_predicates
from hlorewrite.ir import View, defining_op, ir, is_private, nested_ops, regions, sdy
from hlorewrite.ir.collectives import CHANNEL, COLLECTIVE_PERMUTE, GROUP_ATTRIBUTES, UNIFORM_AFTER, WITH_REPLICA_GROUPS
from hlorewrite.ir.regions import Loop
from hlorewrite.ops.table import DEVICE_IDS
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True)
class Varying:
    """Why a value differs between the devices of a group.

    Attributes:
      sentence: the reason, naming the source.
      culprit: the op at the source; None for an argument.
      by_id: whether it is computed from the device's own id, so it is known to differ.
    """

    sentence: str
    culprit: ir.Operation | None = None
    by_id: bool = False


PARTS_OF_SUM = "hlorewrite.parts_of_sum"
"""Attribute on an op of a mesh's view of a program: the axes along which its result is a part of a sum
(``sums_across``)."""
_OTHERS_THAN_OPERANDS = frozenset({regions.WHILE, regions.BARRIER, *regions.BRANCHES, regions.CALL,
                                    *WITH_REPLICA_GROUPS, COLLECTIVE_PERMUTE.op})
_OF_COLLECTIVES = (*GROUP_ATTRIBUTES, CHANNEL)


class Uniformity:
    """Answers whether values are uniform over groups; caches the answers.

    Args:
      view: the module.
      groups: the groups of devices.
      trusting: whether a loop that executes a collective in each iteration is taken to run equally often on all devices
        of its groups, since the program would never end otherwise.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse('''module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
      ...   func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      ...     %id = stablehlo.partition_id : tensor<ui32>
      ...     %two = stablehlo.constant dense<2> : tensor<ui32>
      ...     %row = stablehlo.divide %id, %two : tensor<ui32>
      ...     %column = stablehlo.remainder %id, %two : tensor<ui32>
      ...     return %row, %column : tensor<ui32>, tensor<ui32>
      ...   } }'''))
      >>> uniformity = Uniformity(view, Groups(((0, 1), (2, 3)), "flattened_ids"))
      >>> for op in view.ops("stablehlo.divide", "stablehlo.remainder"):
      ...     found = uniformity.varying(op.results[0])
      ...     print(op.name, "is uniform" if found is None else found.sentence)
      stablehlo.divide is uniform
      stablehlo.remainder it is computed from the device's own id
    """

    def __init__(self, view: View, groups: Groups, *, trusting: bool = True) -> None:
        self.view = view
        self.groups = groups
        self._found: dict[ir.Value, Varying | None] = {}
        self._shardings: dict[ir.Attribute, str] = {}
        self._row = {device: row for row, members in enumerate(groups.rows) for device in members}
        self._map = PerDeviceConstants(sorted(self._row))
        self._by_partition = (groups.mode in ("flattened_ids", "cross_partition")
                              and replica_count(view) == 1)
        self._has_ids = bool(view.ops("stablehlo.partition_id"))
        self._equal_trips: set[ir.Value] = set()
        modes = ("flattened_ids", "cross_partition") if self._by_partition else (groups.mode,)
        self._equal_trips = {predicate for predicate in equal_trip_predicates(view, groups.rows, modes)
                             if not self._is_known_to_differ(predicate)}
        if not trusting:
            self._equal_trips = set()

    def varying(self, value: ir.Value) -> Varying | None:
        """Why a value is not uniform; None when it is.

        Args:
          value: any value of the module.

        Returns:
          The reason it may differ between the devices of a group.
        """
        if value not in self._found:
            self._search(value)
        return self._found[value]

    def forget(self, value: ir.Value) -> None:
        """Forgets a value that is about to leave the module, since another value may reuse its address.

        Answers about other values stay true as long as edits preserve what they compute.
        """
        self._found.pop(value, None)
        self._equal_trips.discard(value)
        self._map.forget(value)

    def release(self) -> None:
        """Frees the cached results; later questions about a value are answered again."""
        self._found.clear()

    def _search(self, root: ir.Value) -> None:
        """Tarjan's strongly connected components, ended early by the first varying source."""
        number: dict[ir.Value, int] = {}
        low: dict[ir.Value, int] = {}
        component: list[ir.Value] = []
        path: list[tuple[ir.Value, list[ir.Value]]] = []

        def enter(value: ir.Value) -> Varying | None:
            sources = self._sources(value)
            if isinstance(sources, Varying):
                path.append((value, []))
                return sources
            pending = [source for source in sources if source not in found or found[source] is not None]
            if not pending:  # most values: a component of one, whose path need not be kept
                found[value] = None
                return None
            number[value] = low[value] = len(number)
            component.append(value)
            path.append((value, pending))
            return None

        found = self._found
        reason = enter(root)
        # Ends: each round takes a source of a value, whose sources are listed once, or leaves the value.
        while path and reason is None:
            value, pending = path[-1]
            if not pending:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[value])
                if low[value] == number[value]:
                    # Ends: each round takes a value of the component, which ends with this one.
                    while True:
                        done = component.pop()
                        found[done] = None
                        if done == value:
                            break
                continue
            source = pending.pop()
            if source in found:
                reason = found[source]
            elif source in number:
                low[value] = min(low[value], number[source])
            else:
                reason = enter(source)
        for value, _ in path:  # every value on the path reads the varying source
            found[value] = reason

    def _is_known_to_differ(self, root: ir.Value) -> bool:
        """Whether a value is computed from sources that differ by the program's own text: device ids and sharded
        constants."""
        return any(isinstance(sources := self._sources(value), Varying)
                   and (sources.by_id or self._is_sharded_constant(value))
                   for value in reachable([root], self._sources_of_any))

    def _sources_of_any(self, value: ir.Value) -> list[ir.Value]:
        """The values that a value is computed from; for one that varies, the operands of its op."""
        sources = self._sources(value)
        if isinstance(sources, Varying):
            maker = defining_op(value)
            return [] if maker is None else list(maker.operands)
        return sources

    def _is_sharded_constant(self, value: ir.Value) -> bool:
        """Whether an argument of a manual region contains different elements of one constant on each device."""
        argument = ir.BlockArgument(value) if defining_op(value) is None else None
        parent = None if argument is None else regions.region_op(argument)
        if argument is None or parent is None or parent.name != regions.MANUAL:
            return False
        numbers = self._map.table(parent.operands[argument.arg_number])
        return numbers is not None and any((table != table.flat[0]).any() for table in numbers)

    # ---- the values that a value is computed from

    def _sources(self, value: ir.Value) -> list[ir.Value] | Varying:
        if value in self._equal_trips:
            return []
        op = defining_op(value)
        if op is None:
            return self._argument_sources(ir.BlockArgument(value))
        name = op.name
        if name not in _OTHERS_THAN_OPERANDS:
            return self._plain_sources(op, value)
        if name in WITH_REPLICA_GROUPS:
            return self._collective_sources(op)
        if name == COLLECTIVE_PERMUTE.op:
            return self._permute_sources(op)
        position = ir.OpResult(value).result_number
        if name == regions.WHILE:
            return self._carried(op, position)
        sources, decides = regions.returned(op, position, self.view), regions.decision(op)
        if sources is None:
            return Varying("it is the result of a function outside the module", op)
        return sources if decides is None else [decides, *sources]

    def _plain_sources(self, op: ir.Operation, value: ir.Value) -> list[ir.Value] | Varying:
        op_name = op.name
        if op_name in varying_ops.VARYING_OPS:
            return Varying(f"it is {varying_ops.VARYING_OPS[op_name]}", op)
        if op_name in DEVICE_IDS:
            return self._by_device(op, value) or Varying("it is the device's own id", op, by_id=True)
        attributes = op.attributes
        has_some = len(attributes) > 0
        if has_some and PARTS_OF_SUM in attributes:
            return self._parts_sources(op)
        if op_name == "stablehlo.custom_call" and not (varying_ops.is_pure_custom_call(op)
                                                       or varying_ops.is_received(op)):
            return Varying("it is the result of a custom call that may differ between devices", op)
        if has_some and any(name in attributes for name in _OF_COLLECTIVES):
            return Varying(f"it is the result of {op_name}, a collective that the analysis does not know", op)
        if not op_name.startswith(varying_ops.DIALECTS) and op_name not in ("sdy.sharding_constraint", "sdy.reshard"):
            return Varying(f"it is the result of {op_name}, an op that the analysis does not know", op)
        sources = list(op.operands)
        if len(op.regions):
            odd = next((inner for inner in nested_ops(op)[1:] if varying_ops.is_odd_in_region(inner)), None)
            if odd is not None:
                return Varying(f"it is computed by a region that contains {odd.name}", odd)
            sources += varying_ops.captured_values(op)
        if sources and self._reads_device_id(op):
            table = self._by_device(op, value)
            if table is not None:
                return table
        return sources

    def _parts_sources(self, op: ir.Operation) -> list[ir.Value] | Varying:
        """Parts of a sum that another mesh has sent: they differ along the named axes."""
        axes = [ir.StringAttr(axis).value for axis in ir.ArrayAttr(op.attributes[PARTS_OF_SUM])]
        mesh = next(iter(meshes(self.view).values()), None)
        if mesh is None or not self._by_partition or not _same_place(mesh, axes, self.groups):
            return Varying("it is a part of a sum that another mesh has sent", op)
        return list(op.operands)

    def _reads_device_id(self, op: ir.Operation) -> bool:
        """A cheap guard: only integer ops with one result may be worth evaluating per device, if the module reads
        ids."""
        if not self._by_partition or not self._has_ids or len(op.results) != 1:
            return False
        type_ = op.results[0].type
        return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.IntegerType)

    def _by_device(self, op: ir.Operation, value: ir.Value) -> list[ir.Value] | Varying | None:
        """Evaluates an index expression on each device; None when it is not one."""
        if op.name == "stablehlo.replica_id" or not self._by_partition:
            return None
        table = self._map.table(value)
        if table is None:
            return None
        first: dict[int, int] = {}
        for place, device in enumerate(self._map.devices):
            other = first.setdefault(self._row[device], place)
            if (table[place] != table[other]).any():
                return Varying("it is computed from the device's own id", op, by_id=True)
        return []

    def _carried(self, while_op: ir.Operation, position: int) -> list[ir.Value]:
        start, following = Loop(while_op).carried(position)
        return [Loop(while_op).predicate, following, start]

    def _argument_sources(self, argument: ir.BlockArgument) -> list[ir.Value] | Varying:
        parent = regions.region_op(argument)
        if parent.name == regions.WHILE:
            return self._carried(parent, argument.arg_number)
        if parent.name == regions.FUNCTION:
            return self._function_argument(parent, argument)
        if parent.name == regions.MANUAL:
            return self._manual_argument(parent, argument.arg_number)
        return Varying(f"it is an argument inside {parent.name}", parent)

    def _function_argument(self, function: ir.Operation, argument: ir.BlockArgument) -> list[ir.Value] | Varying:
        handed_in = [call.operands[argument.arg_number] for call in self.view.calls_of(function)]
        if handed_in and is_private(function):
            return handed_in
        given = self._given_argument(function, argument)
        return given if isinstance(given, Varying) else [*given, *handed_in]

    def _given_argument(self, function: ir.Operation, argument: ir.BlockArgument) -> list[ir.Value] | Varying:
        """An argument that comes from outside the module."""
        attributes = _argument_attributes(function, argument.arg_number)
        replicated = "mhlo.sharding" in attributes and str(attributes["mhlo.sharding"]) == '"{replicated}"'
        if replicated and self._by_partition:  # shardings cover partitions only; replicas may receive anything
            return []
        if "sdy.sharding" in attributes:
            return self._by_sharding(attributes["sdy.sharding"], function)
        return Varying(f"argument {argument.arg_number} of the function may differ between devices", function)

    def _manual_argument(self, region: ir.Operation, position: int) -> list[ir.Value] | Varying:
        given = region.attributes["in_shardings"]
        shardings = self.view.memoize(("in_shardings", given), lambda: shardings_of(given))
        inputs = self._by_sharding(shardings[position], region)
        if isinstance(inputs, Varying):
            return inputs
        return [region.operands[position]] if self._inside_manual(region) else []

    def _inside_manual(self, region: ir.Operation) -> bool:
        """Whether a manual region is inside another one, looking through function calls."""
        return any(op.name == regions.MANUAL for op in regions.around([region], self.view))

    def _by_sharding(self, sharding: ir.Attribute, op: ir.Operation) -> list[ir.Value] | Varying:
        if sharding not in self._shardings:  # a step has many inputs and few shardings
            self._shardings[sharding] = self._differs_by(sharding)
        sentence = self._shardings[sharding]
        return Varying(sentence, op) if sentence else []

    def _differs_by(self, sharding: ir.Attribute) -> str:
        """Why a value of some sharding may differ between the devices of a group; empty when it cannot."""
        if not self._by_partition:
            return "its groups count replicas, but shardings count partitions"
        mesh = mesh_of(self.view, sdy.TensorShardingAttr(sharding).mesh_or_ref)
        if mesh is None or not set(self._row) <= set(mesh.device_ids):
            return "it is sharded over a mesh that does not contain these devices"
        axes = varying_axes(sharding)
        return "" if _same_place(mesh, sorted(axes), self.groups) else f"it is an input sharded over {_quoted(axes)}"

    # ---- collectives

    def _collective_sources(self, op: ir.Operation) -> list[ir.Value] | Varying:
        other = groups_of(op, self.view)
        if isinstance(other, str):
            return Varying(f"it comes from a collective that is ill-formed: {other}", op)
        if not self._counts_alike(other.mode):
            return Varying("it comes from a collective whose groups count devices in another way", op)
        row_of = {device: row for row in other.rows for device in row}
        if op.name in UNIFORM_AFTER and all(
                set(row) <= set(row_of.get(row[0], ())) for row in self.groups.rows):
            return []
        if self._aligned(row_of, by_place=op.name not in UNIFORM_AFTER):
            return list(op.operands)
        return Varying(f"it comes from {op.name} over other groups", op)

    def _counts_alike(self, mode: str | None) -> bool:
        """Whether ids in a collective's mode denote the same devices as our ids."""
        return mode == self.groups.mode or (self._by_partition and mode in ("flattened_ids", "cross_partition"))

    def _aligned(self, row_of: dict[int, tuple[int, ...]], by_place: bool) -> bool:
        """Whether the members of each of our groups have partners in the other groups that hold equal values.

        ``by_place``: the result of a member depends on its place in the group, so the places must match too.
        """
        for members in self.groups.rows:
            reference = row_of.get(members[0])
            for device in members[1:]:
                partners = row_of.get(device)
                if reference is None or partners is None or len(partners) != len(reference):
                    return False
                if by_place and partners.index(device) != reference.index(members[0]):
                    return False
                if any(self._row[a] != self._row[b] for a, b in zip(partners, reference, strict=True)):
                    return False
        return True

    def _permute_sources(self, op: ir.Operation) -> list[ir.Value] | Varying:
        pairs = written_pairs(op, self.view)
        if isinstance(pairs, str):
            return Varying(pairs, op)
        if not self._counts_alike(id_mode(op)):
            return Varying("it comes from a collective_permute that counts devices in another way", op)
        source_of = {target: source for source, target in pairs}
        for members in self.groups.rows:
            rows = {self._row.get(source_of[device]) if device in source_of else "zero" for device in members}
            if len(rows) > 1 or None in rows:
                return Varying("it comes from a collective_permute that sends members different values", op)
        return list(op.operands)


def _same_place(mesh: Mesh, axes: list[str], groups: Groups) -> bool:
    places = mesh.coordinates(axes)
    return all(len({places[device] for device in row}) == 1 for row in groups.rows)


def _quoted(axes: set[str]) -> str:
    return ", ".join(f'"{axis}"' for axis in sorted(axes))


def _argument_attributes(function: ir.Operation, position: int) -> ir.DictAttr | dict[str, ir.Attribute]:
    if "arg_attrs" not in function.attributes:
        return {}
    return ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[position])

"""The processes of an SPMD program, and who participates in a collective.

StableHLO specification, "Parallel execution" and the four ways of grouping: cross-replica, cross-partition,
cross-replica-and-partition, flattened ids. Written from the specification and not shared with the passes, so that a
mistake there is not repeated here.
"""

from dataclasses import dataclass

from hlorewrite.analysis.groups import id_table
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, COLLECTIVE_PERMUTE, GROUP_ATTRIBUTES, REDUCE_SCATTER, ir, stablehlo
from hlorewrite.ir.view import View

Group = tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """Replicas times partitions; a process is numbered ``replica * partitions + partition``.

    Attributes:
      replicas: number of replicas.
      partitions: number of partitions.
    """

    replicas: int
    partitions: int

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self.replicas * self.partitions

    def replica_of(self, process: int) -> int:
        """The replica id of a process."""
        return process // self.partitions

    def partition_of(self, process: int) -> int:
        """The partition id of a process."""
        return process % self.partitions

    def cross_replica(self, rows: list[Group]) -> list[Group]:
        """Rows of replica ids, once for each partition."""
        return [tuple(r * self.partitions + p for r in row) for row in rows for p in range(self.partitions)]

    def cross_partition(self, rows: list[Group]) -> list[Group]:
        """Rows of partition ids, once for each replica."""
        return [tuple(r * self.partitions + p for p in row) for row in rows for r in range(self.replicas)]

    def cross_replica_and_partition(self, rows: list[Group]) -> list[Group]:
        """Rows of replica ids, each with all partitions."""
        return [tuple(r * self.partitions + p for p in range(self.partitions) for r in row) for row in rows]


def groups_of(op: ir.Operation, grid: Grid, view: View) -> list[Group]:
    """Who exchanges data in a collective.

    Args:
      op: the collective.
      grid: the processes.
      view: the module, for meshes that groups may name.

    Returns:
      Groups of process numbers, in the order the op lists them; processes in no group do not participate.

    Raises:
      CannotExecute: a group names a process that does not exist, or names one twice.

    Example:
      >>> Grid(2, 2).cross_partition([(0, 1)]), Grid(2, 2).cross_replica([(0, 1)])
      ([(0, 1), (2, 3)], [(0, 2), (1, 3)])
    """
    channel = _has_channel(op)
    if op.name in (ALL_REDUCE.op, ALL_GATHER.op, REDUCE_SCATTER.op):
        everyone = tuple(range(grid.size if channel else grid.replicas))
        if "use_global_device_ids" in op.attributes:
            groups = _rows(op, tuple(range(grid.size)), view)
        elif channel:
            groups = grid.cross_replica_and_partition(_rows(op, tuple(range(grid.replicas)), view))
        else:
            groups = grid.cross_replica(_rows(op, everyone, view))
    elif channel:
        groups = grid.cross_partition(_rows(op, tuple(range(grid.partitions)), view))
    else:
        groups = grid.cross_replica(_rows(op, tuple(range(grid.replicas)), view))
    members = [process for group in groups for process in group]
    if len(set(members)) != len(members) and op.name != COLLECTIVE_PERMUTE.op:
        raise CannotExecute(f"{op.name} names a device twice in its groups", hint="the module is not valid SPMD code")
    if any(not 0 <= process < grid.size for process in members):
        raise CannotExecute(f"{op.name} names device {max(members)}, and the program runs on {grid.size}",
                            hint="check mhlo.num_partitions and the replica groups")
    return groups


def pairs_of(op: ir.Operation, grid: Grid) -> list[tuple[int, int]]:
    """(source, target) processes of a ``collective_permute``."""
    table = id_table(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"]))
    rows: list[Group] = [(int(a), int(b)) for a, b in table.reshape(-1, 2)]
    groups = grid.cross_partition(rows) if _has_channel(op) else grid.cross_replica(rows)
    if any(not 0 <= process < grid.size for pair in groups for process in pair):
        raise CannotExecute(f"{op.name} names a device that the program does not run on",
                            hint="check mhlo.num_partitions and the source-target pairs")
    return [(pair[0], pair[1]) for pair in groups]


def highest_id(op: ir.Operation, view: View) -> int:
    """The highest replica, partition or device id a collective names, also by axes of a mesh; -1 when it names none."""
    for name in GROUP_ATTRIBUTES:
        if name in op.attributes and isinstance(op.attributes[name], ir.DenseIntElementsAttr):
            ids = id_table(ir.DenseIntElementsAttr(op.attributes[name]))
            return int(ids.max()) if ids.size else -1
        if name in op.attributes:
            return max((process for row in _mesh_rows(op, view) for process in row), default=-1)
    return -1


def _has_channel(op: ir.Operation) -> bool:
    if "channel_handle" not in op.attributes:
        return False
    return stablehlo.ChannelHandle(op.attributes["channel_handle"]).handle > 0


def _rows(op: ir.Operation, everyone: Group, view: View) -> list[Group]:
    attribute = op.attributes["replica_groups"]
    if not isinstance(attribute, ir.DenseIntElementsAttr):
        return _mesh_rows(op, view)
    rows = [tuple(int(i) for i in row if i >= 0) for row in id_table(attribute)]
    rows = [row for row in rows if row]
    return rows or [everyone]


def _mesh_rows(op: ir.Operation, view: View) -> list[Group]:
    from hlorewrite.analysis.groups import groups_of as declared_groups
    groups = declared_groups(op, view)
    if isinstance(groups, str):
        raise CannotExecute(f"the groups of {op.name} cannot be read: {groups}", location=view.source(op),
                            hint="write them as dense groups")
    return [tuple(row) for row in groups.rows]

"""The plan of a split step: fragments, their operands and results, and where arguments and results live."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlorewrite.ir.types import is_floating
from hlorewrite.ops.dims import repeats_whole
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values, closure
from hlorewrite.pipelines.passes.split_stages.meshes import ProgramMeshes
from hlorewrite.pipelines.passes.split_stages.stage_assignment import StageAssignment
from hlorewrite.pipelines.passes.split_stages.step import TrainStep
from hlorewrite.pipelines.passes.split_stages.update import Update, place_update
from hlorewrite.util.reachability import reachable

_WORDS = {"F": "forward", "B": "backward", "I": "input_gradient", "W": "weight_gradient", "before": "before",
          "update": "update"}


@dataclass(eq=False)
class PlannedFragment:
    """A fragment to be written.

    Attributes:
      name: the name of its function.
      task: what it is.
      stage: whose it is.
      mesh: number of the mesh it runs on.
      nodes: what it computes for others.
      members: all it computes, in order, with copies of what floats.
      inputs: numbers of the values it reads.
      outputs: numbers of the values it returns.
    """

    name: str
    task: str
    stage: int
    mesh: int
    nodes: list[StepNode]
    members: list[StepNode] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def hand_on(self, number: int) -> None:
        """Makes a value one of its outputs."""
        if number not in self.outputs:
            self.outputs.append(number)


@dataclass
class StagePlan:
    """The whole program to be written.

    Attributes:
      step: the step.
      topology: the meshes.
      before: fragments before the loop, at most one per mesh.
      body: fragments of one micro-batch.
      after: fragments after the loop.
      home: mesh of each argument.
      carried: the mesh each carried value lives on.
      results: the mesh each result of the program is on.
      mesh_of: the mesh that makes each value that some fragment makes.
      outer: (value, mesh): what the micro-batch reads from outside the loop, and where.
    """

    step: TrainStep
    topology: ProgramMeshes
    before: list[PlannedFragment] = field(default_factory=list)
    body: list[PlannedFragment] = field(default_factory=list)
    after: list[PlannedFragment] = field(default_factory=list)
    home: dict[int, int] = field(default_factory=dict)
    carried: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    mesh_of: dict[int, int] = field(default_factory=dict)
    outer: dict[tuple[int, int], None] = field(default_factory=dict)


def make_plan(step: TrainStep, topology: ProgramMeshes, at: StageAssignment) -> StagePlan:
    """Plans a program.

    Args:
      step: the step, its body placed.
      topology: the meshes.
      at: the positions.

    Returns:
      The plan.
    """
    plan = StagePlan(step, topology)
    drop_dead(step)
    _plan_body(plan, at)
    _plan_around(plan)
    return plan


def drop_dead(step: TrainStep) -> None:
    """Removes everything that neither the results nor their loop-carried values depend on."""
    values = step.values
    carried = {values.find(each.after): each for each in step.carried}
    inside = {values.find(each.inside): each for each in step.carried}

    def reads(number: int) -> Iterable[int]:
        node, each = values.producer[number], carried.get(number) or inside.get(number)
        if node is not None:
            return map(values.find, node.reads)
        return () if each is None else map(values.find, (each.first, each.next))

    live = list(reachable(map(values.find, step.results), reads))
    live_nodes = {id(node) for node in map(values.producer.__getitem__, live)}
    live_carried = {id(carried.get(number) or inside.get(number)) for number in live if values.producer[number] is None}
    step.carried[:] = [each for each in step.carried if id(each) in live_carried]
    for nodes in (step.before, step.body, step.after):
        nodes[:] = [node for node in nodes if id(node) in live_nodes]


def _plan_body(plan: StagePlan, at: StageAssignment) -> None:
    step, topology, values = plan.step, plan.topology, plan.step.values
    by_place: dict[int, list[StepNode]] = {}
    for node in step.body:
        if node.place is not None:
            by_place.setdefault(node.place, []).append(node)
    last = at.stages - 1
    body, free = set(map(id, step.body)), _constants(step)
    ends: list[int] = []  # the position that forwards each carried value
    for each in step.carried:
        made = values.producer[values.find(each.next)]
        place = made.place if made is not None and id(made) in body else None
        ends.append(last if place is None else place)
        by_place.setdefault(ends[-1], [])
    fragments = {place: PlannedFragment(f"{_WORDS[at.task(place)]}_{at.stage(place)}", at.task(place), at.stage(place),
                                        topology.mesh_of[at.stage(place)], by_place[place])
                 for place in sorted(by_place)}
    maker = {number: fragments[node.place] for node in step.body if node.place is not None for number in node.results}
    plan.carried = [topology.mesh_of[at.stage(place)] for place in ends]
    for place, fragment in fragments.items():
        own = [values.find(each.next) for each, end in zip(step.carried, ends, strict=True) if end == place]
        wanted = [number for node in fragment.nodes for number in node.results] + own
        fragment.members, fragment.inputs = closure(
            values, wanted, lambda node, place=place: (id(node) in body and node.place in (None, place))
            or id(node) in free)
        for number in own:
            fragment.hand_on(number)
    for fragment in fragments.values():
        for number in fragment.inputs:
            if number in maker:
                maker[number].hand_on(number)
    plan.body = list(fragments.values())
    for number, fragment in maker.items():
        plan.mesh_of[number] = fragment.mesh
    inside = {values.find(each.inside) for each in step.carried} | {step.counter}
    for fragment in plan.body:
        for number in fragment.inputs:
            if number not in maker and number not in inside:
                plan.outer[number, fragment.mesh] = None


def _constants(step: TrainStep) -> set[int]:
    """Nodes before the loop that depend on constants alone, by identity.

    Each fragment computes constants again, so the trip counts of its loops are known and nothing has to be kept.
    """
    values, found = step.values, set[int]()
    for node in step.before:
        table = node.op is None or (node.name == "stablehlo.constant" and not repeats_whole(node.op, 0)
                                    and not all(map(values.is_small, node.results)))
        makers = [values.producer[values.find(each)] for each in node.reads]
        if not table and values.is_cheap(node) and all(made is not None and id(made) in found for made in makers):
            found.add(id(node))
    return found


def _plan_around(plan: StagePlan) -> None:
    step, topology, values = plan.step, plan.topology, plan.step.values
    wanted = list(plan.outer)
    wanted += [(values.find(each.first), mesh) for each, mesh in zip(step.carried, plan.carried, strict=True)]
    before = set(map(id, step.before))
    needs: dict[int, dict[int, None]] = {}  # mesh -> values the fragment before the loop makes there
    for number, mesh in wanted:
        for argument in _arguments(values, number):
            plan.home.setdefault(argument, mesh)
    for number, mesh in wanted:
        node = values.producer[number]
        if node is not None and id(node) in before:
            at = _taken_from(plan, node, mesh)
            needs.setdefault(at, {})[number] = None
            if at != mesh:
                plan.mesh_of[number] = at
    after = {values.find(each.after): mesh for each, mesh in zip(step.carried, plan.carried, strict=True)}
    update = place_update(step, topology, after, plan.home)
    if regroup_sums(step, update, after):
        update = place_update(step, topology, after, plan.home)
    _settle_arguments(plan, update)
    _plan_update(plan, update, after, needs)
    for mesh in sorted(needs):
        fragment = PlannedFragment(f"before_{topology.first_stage(mesh)}", "before", topology.first_stage(mesh), mesh,
                                   [])
        fragment.members, fragment.inputs = closure(values, needs[mesh], lambda node: id(node) in before)
        fragment.outputs = list(needs[mesh])
        plan.before.append(fragment)
    for fragment in (*plan.before, *plan.after):
        for number in fragment.inputs:
            if values.producer[number] is None and number not in after:
                plan.home.setdefault(number, fragment.mesh)
    made_on = [_result_mesh(plan, after, values.find(each)) for each in step.results]
    for argument, result in step.returned.items():
        plan.home.setdefault(step.arguments[argument], made_on[result] or 0)
    for argument in step.arguments:
        plan.home.setdefault(argument, 0)
    plan.results = [plan.home.get(values.find(each), 0) if mesh is None else mesh
                    for each, mesh in zip(step.results, made_on, strict=True)]
    for argument, result in step.returned.items():
        plan.results[result] = plan.home[step.arguments[argument]]


def _taken_from(plan: StagePlan, node: StepNode, mesh: int) -> int:
    """The mesh that makes a value before the loop: for a slice, the mesh of its argument, so that only the slice is
    sent.
    """
    values = plan.step.values
    source = values.find(node.operands[0]) if node.name == "stablehlo.slice" else -1
    if source not in plan.home or values.bytes(source) <= values.bytes(node.results[0]):
        return mesh
    return plan.home[source]


def _arguments(values: Values, number: int) -> list[int]:
    """The arguments a value before the loop depends on, the value itself if it is one."""
    return closure(values, [number], lambda node: True)[1]


def _plan_update(plan: StagePlan, update: Update, after: dict[int, int], needs: dict[int, dict[int, None]]) -> None:
    """Fragments after the loop: one for each mesh and level, with copies of what floats."""
    step, topology, values = plan.step, plan.topology, plan.step.values
    before, behind, free = set(map(id, step.before)), set(map(id, step.after)), _constants(step)
    extras: dict[tuple[int, int], list[int]] = {}
    for number in map(values.find, step.results):
        node = values.producer[number]
        if node is not None and id(node) not in update.place:
            extras.setdefault((0, update.float_mesh(number)), []).append(number)
    keys = sorted({*update.place.values(), *extras})
    levels: dict[int, int] = {}
    maker: dict[int, PlannedFragment] = {}
    for level, mesh in keys:
        nodes = [node for node in step.after if update.place.get(id(node)) == (level, mesh)]
        stage, count = topology.first_stage(mesh), levels.get(mesh, 0)
        levels[mesh] = count + 1
        fragment = PlannedFragment(f"update_{stage}" + (f"_{count}" if count else ""), "update", stage, mesh, nodes)
        own = needs.get(mesh, {})

        def inside(node: StepNode, key: tuple[int, int] = (level, mesh), own: dict[int, None] = own) -> bool:
            if id(node) in behind:
                return update.place.get(id(node), key) == key
            if id(node) in free:
                return True
            if id(node) not in before or any(number in own for number in node.results):
                return False
            return values.is_cheap(node)

        wanted = [number for node in nodes for number in node.results] + extras.get((level, mesh), [])
        fragment.members, fragment.inputs = closure(values, wanted, inside)
        for number in extras.get((level, mesh), []):
            fragment.hand_on(number)
            maker[number] = fragment
        for number in fragment.inputs:
            node = values.producer[number]
            if node is not None and id(node) in before:
                needs.setdefault(mesh, {})[number] = None
        maker.update((number, fragment) for node in nodes for number in node.results)
        plan.after.append(fragment)
    for number in (*(number for fragment in plan.after for number in fragment.inputs),
                   *map(values.find, step.results)):
        if number in maker:
            maker[number].hand_on(number)
    plan.mesh_of.update((number, fragment.mesh) for number, fragment in maker.items())
    plan.mesh_of.update(after)


def _result_mesh(plan: StagePlan, after: dict[int, int], number: int) -> int | None:
    """The mesh that makes a result; None for an argument that is not placed yet."""
    if number in plan.mesh_of:
        return plan.mesh_of[number]
    return plan.home.get(number, after.get(number))


def _settle_arguments(plan: StagePlan, update: Update) -> None:
    """Places arguments that the loop does not read, such as the optimizer's state, with their parameter."""
    values = plan.step.values
    for number in plan.step.arguments:
        if number in update.group and values.elements(number) > 1:
            plan.home.setdefault(number, update.group[number])


# ---- sums of scalars from several meshes, as in a global norm: each mesh first adds up its own, then sends one number


def regroup_sums(step: TrainStep, update: Update, after: dict[int, int]) -> int:
    """Adds ``a0 + b0 + a1 + b1`` as ``(a0 + a1) + (b0 + b1)``, a on one mesh and b on another.

    Args:
      step: the step; its nodes after the loop are changed.
      update: where they run so far.
      after: mesh of each result of the loop.

    Returns:
      How many sums were regrouped; if any, ops have to be placed again.
    """
    values = step.values
    readers: dict[int, int] = {}
    adds: dict[int, int] = {}  # value -> how often adds read it
    for node in step.after:
        for each in map(values.find, node.reads):
            readers[each] = readers.get(each, 0) + 1
            adds[each] = adds.get(each, 0) + _is_sum(values, node)
    for each in map(values.find, step.results):
        readers[each] = readers.get(each, 0) + 1
    count = 0
    for node in list(step.after):
        result = values.find(node.results[0])
        if not _is_sum(values, node) or (readers.get(result) == 1 and adds.get(result) == 1):
            continue
        terms, inner = _terms(values, node, readers)
        groups: dict[int | None, list[int]] = {}
        for term in terms:
            groups.setdefault(_mesh(values, update, after, term), []).append(term)
        if len(groups.keys() - {None}) > 1 and len(terms) > len(groups):
            _write(step, node, inner, groups)
            count += 1
    return count


def _is_sum(values: Values, node: StepNode) -> bool:
    from hlorewrite.ir.binding import ir
    if node.name not in ("stablehlo.add", "add"):
        return False
    type_ = ir.RankedTensorType(values.types[node.results[0]])
    return values.elements(node.results[0]) == 1 and is_floating(type_.element_type)


def _terms(values: Values, root: StepNode, readers: dict[int, int]) -> tuple[list[int], list[StepNode]]:
    """What a tree of additions adds, left to right, and its inner nodes."""
    terms: list[int] = []
    inner: list[StepNode] = []
    pending = [root]
    stack: list[int] = list(map(values.find, reversed(pending.pop().operands)))
    # Ends: each step goes to operands.
    while stack:
        number = stack.pop()
        node = values.producer[number]
        if node is not None and _is_sum(values, node) and readers.get(number) == 1:
            inner.append(node)
            stack += map(values.find, reversed(node.operands))
        else:
            terms.append(number)
    return terms, inner


def _mesh(values: Values, update: Update, after: dict[int, int], number: int) -> int | None:
    node = values.producer[number]
    if node is not None and id(node) in update.place:
        return update.place[id(node)][1]
    return after.get(number)


def _write(step: TrainStep, root: StepNode, inner: list[StepNode], groups: dict[int | None, list[int]]) -> None:
    values = step.values
    own = groups.pop(None, [])  # constants and the like go with the first mesh's
    first = next(iter(groups))
    groups[first] = own + groups[first]
    made: list[StepNode] = []

    def add(left: int, right: int) -> int:
        node = values.make("add", (left, right), values.types[root.results[0]], root.results[0])
        made.append(node)
        return node.results[0]

    sums = []
    for terms in groups.values():
        total = terms[0]
        for term in terms[1:]:
            total = add(total, term)
        sums.append(total)
    total = sums[0]
    for each in sums[1:]:
        total = add(total, each)
    made[-1].results = root.results
    values.producer[root.results[0]] = made[-1]
    gone = {id(root), *map(id, inner)}
    place = next(i for i, node in enumerate(step.after) if node is root)
    step.after[place:place + 1] = made
    step.after[:] = [node for node in step.after if id(node) not in gone]

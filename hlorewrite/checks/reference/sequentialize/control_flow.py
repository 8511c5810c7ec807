"""Control flow that contains collectives, run jointly by all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlorewrite.checks.reference.sequentialize.writer import Environment, LockstepWriter, Values, World, is_shared
from hlorewrite.ir.binding import ir

if TYPE_CHECKING:
    from collections.abc import Sequence


def _while(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
           ) -> list[Values]:
    """Starts from the guess that what is shared before the loop stays so, and gives the guess up where it fails."""
    shared = [is_shared(values) for values in operands]
    # Ends: each round gives up a value that was taken for shared.
    while True:
        joint = _JointLoop(lockstep, op, operands, shared, environment, world)
        broken = joint.write()
        if not broken:
            return joint.results()
        joint.loop.erase()
        shared = [flag and position not in broken for position, flag in enumerate(shared)]


class _JointLoop:
    """One try at a joint loop; carried values are one value where shared, else one a process, then the flag."""

    def __init__(self, lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], shared: list[bool],
                 environment: Environment, world: World) -> None:
        self.lockstep, self.op, self.shared = lockstep, op, shared
        self.environment, self.world = environment, world
        self.size = world.grid.size
        initial = [v for values, one in zip(operands, shared, strict=True) for v in (values[:1] if one else values)]
        initial.append(lockstep.true_or_false(False))
        self.types = [value.type for value in initial]
        self.loop = lockstep.emit("stablehlo.while", initial, self.types, regions=2)
        self.location = ir.Location.unknown(op.context)

    def write(self) -> set[int]:
        """Writes both regions; returns the positions of values that were assumed to be shared and are not."""
        lockstep = self.lockstep
        condition_block, body_block = (region.blocks.append(*self.types, arg_locs=[self.location] * len(self.types))
                                       for region in self.loop.regions)
        with lockstep.inside(condition_block):
            conditions, world = self._conditions(condition_block)
            lockstep.emit("stablehlo.return", [lockstep.any_of(world.masks or conditions)], [])
        with lockstep.inside(body_block):
            conditions, world = self._conditions(body_block)
            source = self.op.regions[1].blocks[0]
            old = self._spread(list(body_block.arguments))
            inner = {**self.environment, **dict(zip(source.arguments, old, strict=True))}
            new = lockstep.run_block(source, inner, world)
            if not is_shared(conditions):  # who is done keeps what it has
                new = [tuple(lockstep.select(c, a, b) for c, a, b in zip(conditions, news, olds, strict=True))
                       for news, olds in zip(new, old, strict=True)]
            broken = {position for position, values in enumerate(new)
                      if self.shared[position] and not is_shared(values)}
            flag = lockstep.any_of([body_block.arguments[len(self.types) - 1], *lockstep.diverged])
            carried = [v for values, one in zip(new, self.shared, strict=True) for v in (values[:1] if one else values)]
            lockstep.emit("stablehlo.return", [*carried, flag], [])
        return broken

    def results(self) -> list[Values]:
        """The values that the loop passes to each process."""
        results = list(self.loop.results)
        self.lockstep.diverged.append(results[-1])
        return self._spread(results)

    def _conditions(self, block: ir.Block) -> tuple[Values, World]:
        """Writes the loop's condition; returns it and the processes active in the next iteration."""
        source = self.op.regions[0].blocks[0]
        arguments = self._spread(list(block.arguments))
        inner = {**self.environment, **dict(zip(source.arguments, arguments, strict=True))}
        conditions = self.lockstep.run_block(source, inner, self.world)[0]
        if is_shared(conditions) and self.world.masks is None:
            return conditions, self.world
        return conditions, self.lockstep.within(self.world, conditions)

    def _spread(self, flat: Sequence[ir.Value]) -> list[Values]:
        out, at = [], 0
        for one in self.shared:
            out.append((flat[at],) * self.size if one else tuple(flat[at:at + self.size]))
            at += 1 if one else self.size
        return out


def _case(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
          ) -> list[Values]:
    index = operands[0]
    if is_shared(index):
        return _joint_branches(lockstep, op, index[0], environment, world)
    last = len(op.regions) - 1
    chosen = [_equals(lockstep, index, branch) for branch in range(last)]
    out_of_range = tuple(lockstep.value("stablehlo.not", [lockstep.any_of(flags)], flags[0].type)
                         for flags in zip(*chosen, strict=True)) if chosen else ()
    masks = [*chosen, out_of_range] if chosen else []
    return _all_branches(lockstep, op, masks, environment, world)


def _if(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], environment: Environment, world: World
        ) -> list[Values]:
    predicate = operands[0]
    if is_shared(predicate):
        return _joint_branches(lockstep, op, predicate[0], environment, world)
    otherwise = tuple(lockstep.value("stablehlo.not", [p], p.type) for p in predicate)
    return _all_branches(lockstep, op, [predicate, otherwise], environment, world)


def _equals(lockstep: LockstepWriter, index: Values, branch: int) -> Values:
    truth = ir.Type.parse("tensor<i1>")
    return tuple(lockstep.value("stablehlo.compare", [i, lockstep.constant(str(branch), i.type)], truth,
                                comparison_direction="#stablehlo<comparison_direction EQ>") for i in index)


def _all_branches(lockstep: LockstepWriter, op: ir.Operation, masks: list[Values], environment: Environment,
                  world: World) -> list[Values]:
    """Computes every branch, each with the processes that take it active, and selects."""
    total: list[Values] | None = None
    for region, mask in zip(op.regions, masks, strict=True):
        results = lockstep.run_block(region.blocks[0], dict(environment), lockstep.within(world, mask))
        total = results if total is None else [
            tuple(lockstep.select(m, a, b) for m, a, b in zip(mask, new, old, strict=True))
            for new, old in zip(results, total, strict=True)]
    return total or []


def _joint_branches(lockstep: LockstepWriter, op: ir.Operation, index: ir.Value, environment: Environment, world: World
                    ) -> list[Values]:
    """The op stays; each branch yields the values of all processes, then the flag."""
    size = world.grid.size
    types = [result.type for result in op.results for _ in range(size)] + [ir.Type.parse("tensor<i1>")]
    made = lockstep.emit(op.name, [index], types, regions=len(op.regions))
    for source, target in zip(op.regions, made.regions, strict=True):
        with lockstep.inside(target.blocks.append()):
            results = lockstep.run_block(source.blocks[0], dict(environment), world)
            flat = [value for values in results for value in values]
            lockstep.emit("stablehlo.return", [*flat, lockstep.any_of(lockstep.diverged)], [])
    values = list(made.results)
    lockstep.diverged.append(values[-1])
    return [tuple(values[k * size:(k + 1) * size]) for k in range(len(op.results))]


HANDLERS = {"stablehlo.while": _while, "stablehlo.case": _case, "stablehlo.if": _if}

"""Runs a program of several meshes on JAX's own runtime, fragment by fragment, in the order of a schedule.

    driver = PipelineDriver(module, schedule="eager-1f1b")
    state = driver.place(host_values)
    state = driver(*state)                      # returns at once; the devices work

Everything is decided when the driver is made: the order of all calls, the slot of each value, the buffers that are
donated, the way each transfer is done. A step is then one walk over a flat list.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.processes.agreement import Agreement, Decision
from hlorewrite.jaxbridge.processes.consensus import VERSIONS
from hlorewrite.jaxbridge.processes.fetch import fetch_value
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.xla import private
from hlorewrite.pipelines.actions.fit import schedule_for
from hlorewrite.pipelines.actions.order import Action, Liveness, ProgramOrder, Step, liveness, order_program
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, Transfer, read_program
from hlorewrite.pipelines.runtime.compile_once import Hold, in_flight_here, spread
from hlorewrite.pipelines.runtime.fragments import Fragments
from hlorewrite.pipelines.runtime.group import meet, settled, solver_effort, step_failed
from hlorewrite.pipelines.runtime.meshes import (
    DonationCheck,
    PlacedMeshes,
    check_arguments,
    numpy_type,
    place_meshes,
    place_value,
)
from hlorewrite.pipelines.runtime.transfers import TransferCompiler, TransferPlan
from hlorewrite.pipelines.schedules import Schedule
from hlorewrite.util.progress import progress

Function = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class DriverInstruction:
    """One entry of the flat list a step walks over.

    Attributes:
      function: the compiled fragment, transfer or copy; takes arrays, returns a list of arrays.
      reads: slots of its operands.
      writes: slots of its results.
      drops: slots whose reference is released afterwards.
      hold: threads it may hold while it waits, on CPU; if any, it returns a token after its results.
      action: what it executes.
    """

    function: Function
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    drops: tuple[int, ...]
    hold: Hold
    action: Action


class PipelineDriver:
    """A compiled pipelined step: a function of placed arrays.

    Args:
      module: the program, in the ``mpmd`` dialect; it is not changed.
      devices: all devices, of which number d of the program is the d-th, or the devices of each mesh by name;
        ``jax.devices()`` by default.
      schedule: a schedule, or the name of one; the one the program names by default.
      topology: the cluster's servers, for plans of transfers; guessed from the devices by default.
      strategy: the strategy of transfers that carry no plan: ``auto``, ``broadcast``, ``send-recv``, ...
      donate: whether buffers that die with a call are donated to it.
      timeout_s: how long a process that is missing, silent or busy with other work may keep the others waiting,
        seconds; it is named on stderr after seven. One that is gone ends the others at once.
      progress: whether to show on a terminal what is compiled.
      agreement: the agreement with the other processes, if it was begun before the module was rewritten.

    Raises:
      PlanError: the schedule does not fit the program, or a plan in it cannot be made again.
      UsageError: the devices do not fit its meshes.
      InputError: the module is not a program, or XLA refuses a fragment.
      PlanError: another process has another program, schedule, version or plan, or does not arrive in time.
    """

    def __init__(self, module: Module, devices: Sequence[Any] | dict[str, Sequence[Any]] | None = None,
                 schedule: Schedule | str | None = None, *, topology: str = "", strategy: str = "auto",
                 donate: bool = True, timeout_s: float = TIMEOUT_S, progress: bool = False,
                 agreement: Agreement | None = None) -> None:
        self.program: Program = read_program(module)
        self.schedule: Schedule | None = schedule_for(self.program, schedule)
        self.order: ProgramOrder = order_program(self.program, self.schedule)
        self.liveness: Liveness = liveness(self.program, self.order)
        self.timeout_s = timeout_s
        self.meshes: PlacedMeshes = place_meshes(self.program, devices)
        self.shardings: tuple[NamedSharding, ...] = tuple(self.meshes.sharding(self.program.types[value])
                                                          for value in self.program.arguments)
        self._tokens = self.meshes.platform == "cpu"
        agreement = agreement or meet(self.program, self.meshes, timeout_s)
        self._transfers = TransferCompiler(module, self.program, self.meshes, topology=topology, strategy=strategy,
                                           tokens=self._tokens, solver_effort=solver_effort(agreement))
        made = frozenset(value for step in self.program.steps
                         for value in (step.results if isinstance(step, FragmentCall) else (step.result,)))
        self._fragments = Fragments(module, self.meshes, self.program.types, self._tokens, made)
        self.plans = self._transfers.plans()
        self._donate, self._progress = donate, progress
        self._turns: dict[str, int] = {}
        self.watch: Watch | None = None if agreement is None else settled(
            agreement, self.program, self.meshes, _decision(module, _how(self.schedule, list(self.plans.values()))))
        self._types = tuple(self.program.types[value] for value in self.program.arguments)
        self._here = tuple(self.meshes.here(kind.mesh) for kind in self._types)
        self.instructions: tuple[DriverInstruction, ...] = self._compiled(donate)
        self._template: list[Any] = self._constants()
        self._in_flight = in_flight_here()
        self._donations = DonationCheck(self.program.donated if donate else frozenset(), self.program.name)
        self._again = self._returned_again()

    # ---- running

    def place(self, values: Sequence[Any]) -> tuple[jax.Array | None, ...]:
        """Puts values where the program's arguments are.

        Args:
          values: one for each argument: host arrays (the same on every process), or JAX arrays that live elsewhere.

        Returns:
          One array for each argument; None for those on meshes that have no device of this process.

        Raises:
          UsageError: there are more or fewer, or one has another shape or dtype.
        """
        if len(values) != len(self._types):
            raise UsageError(f"the program has {len(self._types)} arguments but got {len(values)}",
                             location=self.program.name, hint="pass one value for each argument")
        placed = tuple(place_value(position, value, kind, sharding, here) for position, (value, kind, sharding, here) in
                       enumerate(zip(values, self._types, self.shardings, self._here, strict=True)))
        self._donations.placed(values, placed)
        return placed

    def __call__(self, *arguments: jax.Array | None) -> tuple[jax.Array | None, ...]:
        """Runs one step; returns as soon as everything is passed to the devices.

        Args:
          *arguments: placed arrays, one for each argument of the program; what is given for meshes without a device of
            this process is not checked.

        Returns:
          One array for each result; None for those on meshes without a device of this process.
        """
        check_arguments(arguments, self._types, self.shardings, self._here, self.program.name)
        self._donations.check(arguments)
        if self.watch is not None:
            self.watch.begun += 1
        slots = self.filled(arguments)
        given = [slots[slot] for slot in self.liveness.given] if self._donate else ()
        step, in_flight = None, self._in_flight
        try:
            for step in self.instructions:
                if step.hold.threads:
                    in_flight.wait_for_room(step.hold)
                made = step.function(*[slots[slot] for slot in step.reads])
                if step.hold.threads:
                    in_flight.add(made[-1], step.hold)
                for slot, value in zip(step.writes, made, strict=False):  # a token may follow
                    slots[slot] = value
                for slot in step.drops:
                    slots[slot] = None
        except (jax.errors.JaxRuntimeError, ValueError, TypeError) as error:
            raise step_failed(step.action if step else None, error) from error
        for value in given:
            if value is not None:
                value.delete()
        results = [slots[slot] for slot in self.order.results]
        for position, copy in self._again:
            if results[position] is not None:
                results[position], = copy(results[position])
        self._donations.made(results)
        return tuple(results)

    def wait(self, results: Sequence[jax.Array | None]) -> None:
        """Waits until results are there.

        Args:
          results: the results of a step; None is passed over.

        Raises:
          StepFailed: a fragment failed while it ran.
        """
        try:
            jax.block_until_ready([result for result in results if result is not None])
        except jax.errors.JaxRuntimeError as error:
            raise step_failed(None, error) from error

    def fetch(self, position: int, result: jax.Array | None, to: int | None = None) -> np.ndarray | None:
        """A result's value on every process, or on one; every process must call this.

        Args:
          position: the position of the result among the program's results.
          result: what the step returned for it here.
          to: the process that gets it; None for all.

        Returns:
          The value, copied to the host; None on processes that do not get it.

        Raises:
          PlanError: a process that has a part of it does not send it in time.
        """
        kind = self.program.types[self.program.results[position]]
        if result is None:
            result = jax.make_array_from_single_device_arrays(kind.shape, self.meshes.sharding(kind), [],
                                                              dtype=numpy_type(kind))
        return fetch_value(f"result {position}", result, self.watch, self.timeout_s, to)

    @property
    def compilations(self) -> int:
        """How many fragments and transfers were compiled."""
        return self._fragments.compilations + self._transfers.compilations

    def close(self) -> None:
        """Says that this process runs no more steps, and stops watching the others."""
        if self.watch is not None:
            self.watch.stop()

    # ---- for those who measure

    def filled(self, arguments: Sequence[Any]) -> list[Any]:
        """Slots with the arguments and the micro-batches' indices in place."""
        slots = self._template.copy()
        for slot, value in zip(self.order.arguments, arguments, strict=True):
            slots[slot] = value
        return slots

    def run_one(self, step: DriverInstruction, slots: list[Any]) -> Sequence[Any]:
        """Passes one instruction to the runtime; returns what its function returns."""
        if step.hold.threads:
            self._in_flight.wait_for_room(step.hold)
        made = step.function(*[slots[slot] for slot in step.reads])
        if step.hold.threads:
            self._in_flight.add(made[-1], step.hold)
        self.store(slots, step, made)
        return made

    @staticmethod
    def store(slots: list[Any], step: DriverInstruction, made: Sequence[Any]) -> None:
        """Puts results into their slots and releases what is not read any more."""
        for slot, value in zip(step.writes, made, strict=False):  # a token may follow
            slots[slot] = value
        for slot in step.drops:
            slots[slot] = None

    def undonated(self) -> tuple[DriverInstruction, ...]:
        """The same instructions, compiled without donation."""
        return self._compiled(donate=False)

    def turn(self, topic: str) -> int:
        """How often this driver has reached a topic; equal on processes that do the same."""
        self._turns[topic] = self._turns.get(topic, 0) + 1
        return self._turns[topic]

    # ---- made once

    def _compiled(self, donate: bool) -> tuple[DriverInstruction, ...]:
        """The instructions of this process: calls on its meshes, transfers it participates in."""
        steps = {id(step): position for position, step in enumerate(self.program.steps)}
        mine = [(action, dead) for action, dead in zip(self.order.actions, self.liveness.dead, strict=True)
                if self._runs_here(action)]
        known: dict[int, Function] = {}
        with progress("compiling", len({id(action.step) for action, _ in mine}), shown=self._progress) as advance:
            calls = {id(action.step): action.step for action, _ in mine if isinstance(action.step, FragmentCall)}
            self._fragments.compile_all([(call, self._donated(call, donate)) for call in calls.values()], advance)
            for step in (action.step for action, _ in mine):
                if id(step) not in known:
                    if isinstance(step, Transfer):
                        advance("a transfer")
                    known[id(step)] = self._function(step, steps, donate)
        return tuple(DriverInstruction(known[id(action.step)], action.reads, action.writes, dead,
                                       self._hold(action.step, steps), action) for action, dead in mine)

    def _function(self, step: Step, steps: dict[int, int], donate: bool) -> Function:
        """What executes a step."""
        if isinstance(step, FragmentCall):
            return self._fragments.compiled(step, self._donated(step, donate))
        if isinstance(step, Transfer):
            return self._transfers.compiled(self.plans[steps[id(step)]])
        fill = self._fragments.filled(step.operand)  # accumulators begin as zeros: cheaper made than copied
        return _copy(self.meshes.sharding(self.program.types[step.operand])) if fill is None else lambda _: (fill(),)

    def _donated(self, call: FragmentCall, donate: bool) -> frozenset[int]:
        """Positions of a call's operands whose buffers it takes over."""
        return self.liveness.donated[call.callee] if donate else frozenset()

    def _hold(self, step: Step, steps: dict[int, int]) -> Hold:
        """Threads that a step may hold while it waits for others."""
        if isinstance(step, FragmentCall):
            waits, names = self._fragments.waits(step), {step.mesh}
        elif isinstance(step, Transfer):
            waits = self._transfers.waits(self.plans[steps[id(step)]])
            names = {self.program.types[value].mesh for value in (step.operand, step.result)}
        else:
            return Hold()
        devices = {device for name in names for device in self.meshes.of_mesh(name)}
        here = sum(device.process_index == jax.process_index() for device in devices)
        return Hold(here, here < len(devices)) if self._tokens and waits else Hold()

    def _runs_here(self, action: Action) -> bool:
        """Whether this process has a part in an action."""
        step = action.step
        if isinstance(step, FragmentCall):
            return self.meshes.here(step.mesh)
        values = (step.operand, step.result) if isinstance(step, Transfer) else (step.operand,)
        return any(self.meshes.here(self.program.types[value].mesh) for value in values)

    def _returned_again(self) -> list[tuple[int, Function]]:
        """Copies each result that is also another result, so that the next step can take both."""
        seen: set[int] = set()
        again: list[tuple[int, Function]] = []
        for position, slot in enumerate(self.order.results):
            kind = self.program.types[self.program.results[position]]
            if slot in seen and self.meshes.here(kind.mesh):
                again.append((position, _copy(self.meshes.sharding(kind))))
            seen.add(slot)
        return again

    def _constants(self) -> list[Any]:
        """Slots with the micro-batches' indices in place, on each mesh that asks for them."""
        slots: list[Any] = [None] * len(self.order.values)
        for slot, microbatch in self.order.indices.items():
            kind = self.program.types[self.order.values[slot]]
            slots[slot] = place_value(slot, np.asarray(microbatch, numpy_type(kind)), kind, self.meshes.sharding(kind),
                                      self.meshes.here(kind.mesh))
        return slots


def _copy(sharding: NamedSharding) -> Function:
    """Copies an array in place; XLA compiles a program for that only where some devices are another process's."""
    copy = private.device_copier(sharding, sharding, always=True) if not spread(tuple(sharding.device_set)) else \
        jax.jit(jnp.copy, in_shardings=sharding, out_shardings=sharding)
    return lambda array: (copy(array),)


def _decision(module: Module, how: str) -> Decision:
    """What this process would run."""
    text = module.text()
    return Decision(_sha256(text), _sha256("\n".join([VERSIONS, text, how])), how, VERSIONS)


def _how(schedule: Schedule | None, plans: Sequence[TransferPlan]) -> str:
    """Schedule and transfers as lines that processes compare."""
    return "\n".join([f"schedule {_sha256(schedule.text())[:12] if schedule else 'none'}",
                      f"transfers {_sha256(' '.join(plan.digest for plan in plans))[:12]}"])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

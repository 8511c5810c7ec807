"""Fragments of a program as compiled functions of arrays.

A fragment's function becomes ``@main`` of a separate module, with its mesh and the functions it calls. One jitted
function lends all of them JAX's envelope (shardings, C++ dispatch).
"""

import functools
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError
from hlorewrite.ir import Module, View, does_more_than_compute, ir, nested_ops
from hlorewrite.jaxbridge.xla import miscompile_workarounds, private
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.platform_passes import legal_module
from hlorewrite.pipelines.mpmd.program import FragmentCall
from hlorewrite.pipelines.mpmd.types import MeshTensor, device_bytes
from hlorewrite.pipelines.runtime.compile_once import ExecutableStore, compile_all, spread
from hlorewrite.pipelines.runtime.host_splats import FilledCall, Number, filled_maker, take_filled
from hlorewrite.pipelines.runtime.meshes import PlacedMeshes, numpy_type
from hlorewrite.pipelines.runtime.standalone import add_token, standalone

Compiled = Callable[..., Sequence[jax.Array]]
Key = tuple[str, tuple[Any, ...]]
KEPT = 0.1
"""Limit of the operands whose donation a fragment gives up to equal another one, as a share of its operands' and
results' bytes."""
_DONOR = re.compile(r"jax\.buffer_donor = true(, )?")
_COLLECTIVE = re.compile(r"= .*\b(all-reduce|all-gather|reduce-scatter|collective-|all-to-all|ragged-all)")


@dataclass(frozen=True)
class PreparedFragment:
    """A fragment before it is compiled.

    Attributes:
      call: a call of it.
      key: equal for what is compiled once; None if the host makes all results.
      shared: equal for fragments that are equal except for their devices; empty if nothing is shared.
      module: what is compiled.
      results: numbers of the results that it makes.
      filled: the number that each other result is filled with, by position.
    """

    call: FragmentCall
    key: Key | None
    shared: str
    module: Module
    results: tuple[int, ...]
    filled: Mapping[int, Number]


@dataclass
class Fragments:
    """Compiles fragments; compiles equal ones on the same devices only once.

    Args:
      module: the program's module.
      meshes: its meshes on devices.
      types: types of the program's values.
      tokens: whether fragments over several devices return one more result, a scalar that is ready when they have
        run: results may be donated to others before they can be waited for.
      made: numbers of the values that the step itself makes; the others may be buffers of the caller.
    """

    module: Module
    meshes: PlacedMeshes
    types: Sequence[MeshTensor]
    tokens: bool = False
    made: frozenset[int] = frozenset()
    _known: dict[Key, jax.stages.Compiled] = field(default_factory=dict, repr=False)
    _of_call: dict[tuple[str, frozenset[int]], Key | None] = field(default_factory=dict, repr=False)
    _functions: dict[tuple[str, frozenset[int]], Compiled] = field(default_factory=dict, repr=False)
    _waiting: set[str] = field(default_factory=set, repr=False)
    _store: ExecutableStore = field(default_factory=ExecutableStore, repr=False)
    _modules: dict[str, ir.Module] = field(default_factory=dict, repr=False)
    _shapes: dict[MeshTensor, jax.ShapeDtypeStruct] = field(default_factory=dict, repr=False)
    _filled: dict[int, Number] = field(default_factory=dict, repr=False)

    @property
    def compilations(self) -> int:
        """How many programs XLA compiled; those that were read back for other devices are not counted."""
        return len(self._known) - self._store.read

    def compile_all(self, calls: Sequence[tuple[FragmentCall, frozenset[int]]], done: Callable[[str], None]) -> None:
        """Compiles fragments, several at a time; compiles equal ones only once, even on different meshes.

        Args:
          calls: a call of each fragment, and the positions of operands whose buffers it takes over.
          done: called with the name of each fragment that is compiled.

        Raises:
          InputError: XLA refuses a fragment.
        """
        work: dict[Key, tuple[str, Callable[[], jax.stages.Compiled]]] = {}
        prepared: dict[tuple[str, frozenset[int]], PreparedFragment] = {}
        names: dict[Key, list[FragmentCall]] = {}
        unknown = [(call, donated) for call, donated in calls if (call.callee, donated) not in self._functions]
        if not unknown:
            return
        view = View(self.module)
        for call, donated in unknown:
            if (call.callee, donated) not in prepared:
                prepared[call.callee, donated] = self._prepared(view, call, donated)
        self._donate_equally(view, prepared)
        for each in prepared.values():
            call = each.call
            if each.key is None:
                done(call.callee)
                continue
            names.setdefault(each.key, []).append(call)
            if each.key not in self._known:
                work[each.key] = each.shared, functools.partial(self._compile, each.call, self._lowered(each))
        self._known |= compile_all(work, self._store, lambda key: done(names[key][0].callee))
        self._modules.clear()
        for name, each in prepared.items():
            self._of_call[name] = each.key
            self._functions[name] = self._function(each)
            self._filled |= {each.call.results[place]: number for place, number in each.filled.items()}
        for key, own in names.items():
            if self._token(own[0]) and _COLLECTIVE.search(self._known[key].as_text() or ""):
                self._waiting.update(call.callee for call in own)

    def compiled(self, call: FragmentCall, donated: frozenset[int]) -> Compiled:
        """A fragment as a function of its operands, placed as the program says.

        Args:
          call: a call of it.
          donated: positions of operands whose buffers it takes over.

        Returns:
          The function; it returns a list with one array for each result.

        Raises:
          InputError: XLA refuses the fragment.
        """
        self.compile_all([(call, donated)], lambda name: None)
        return self._functions[call.callee, donated]

    def _donate_equally(self, view: View, prepared: dict[tuple[str, frozenset[int]], PreparedFragment]) -> None:
        """Drops donations that only some of otherwise equal fragments have, if the operands are small: the fragments
        then share one executable.
        """
        alike: dict[str, list[tuple[str, frozenset[int]]]] = {}
        for name, each in prepared.items():
            if each.shared:
                alike.setdefault(_DONOR.sub("", each.shared), []).append(name)
        for names in alike.values():
            common = frozenset.intersection(*(donated for _, donated in names))
            for callee, donated in names:
                call = prepared[callee, donated].call
                kept = [call.operands[place] for place in donated - common]
                if kept and self.made.issuperset(kept) and \
                        self._bytes(call, kept) <= KEPT * self._bytes(call, (*call.operands, *call.results)):
                    prepared[callee, donated] = self._prepared(view, call, common)

    def _bytes(self, call: FragmentCall, values: Iterable[int]) -> float:
        """Bytes of some values on each device of a call."""
        mesh = self.meshes.program.meshes[call.mesh]
        return sum(device_bytes(self.types[value], mesh) for value in values)

    def _prepared(self, view: View, call: FragmentCall, donated: frozenset[int]) -> PreparedFragment:
        """What is compiled for a fragment, and what other meshes' fragments share with it."""
        alone = standalone(view, call.callee, call.mesh, donated)
        # On GPUs zeros would have to be sent to the device, which makes them faster itself.
        filled = take_filled(alone) if self.meshes.platform == "cpu" else {}
        results = tuple(value for place, value in enumerate(call.results) if place not in filled)
        if filled and not results and not any(map(does_more_than_compute, nested_ops(alone.operation))):
            return PreparedFragment(call, None, "", alone, results, filled)
        if self._token(call):
            add_token(alone, call.mesh)
        legal = legal_module(alone, self.meshes.platform)
        shapes = [self.types[value] for value in (*call.operands, *results)]
        devices = self.meshes.of_mesh(call.mesh)
        text = f"{legal.text()} {[each.spec for each in shapes]}"
        key = hashlib.sha256(text.encode()).hexdigest(), devices
        # Equal fragments of different meshes differ in the mesh's name only. On GPUs this was not tried.
        mesh = re.compile(rf"@{re.escape(call.mesh)}\b")
        shared = f"{mesh.sub('@mesh', text)} {len(devices)}" if self.meshes.platform == "cpu" and \
            not spread(devices) else ""
        with legal.context:
            legal.operation.attributes["sym_name"] = ir.StringAttr.get(call.callee)
        return PreparedFragment(call, key, shared, legal, results, filled)

    def filled(self, value: int) -> Callable[[], jax.Array] | None:
        """A function that makes a copy of a value that a compiled fragment fills with one number; None for any other
        value."""
        if value not in self._filled:
            return None
        type_ = self.types[value]
        return filled_maker(type_.shape, numpy_type(type_), self.meshes.sharding(type_), self._filled[value])

    def waits(self, call: FragmentCall) -> bool:
        """Whether a compiled fragment contains collectives, in which its devices wait for each other."""
        return call.callee in self._waiting

    def _token(self, call: FragmentCall) -> bool:
        return self.tokens and len(self.meshes.of_mesh(call.mesh)) > 1

    def _function(self, fragment: PreparedFragment) -> Compiled:
        """What runs a fragment, with the results that the host makes."""
        rest = None if fragment.key is None else self._known[fragment.key]
        if rest is not None and not fragment.filled:
            return rest
        types = {place: self.types[fragment.call.results[place]] for place in fragment.filled}
        return FilledCall(rest, {place: (type_.shape, numpy_type(type_), self.meshes.sharding(type_),
                                         fragment.filled[place]) for place, type_ in types.items()})

    def _compile(self, call: FragmentCall, lowered: jax.stages.Lowered) -> jax.stages.Compiled:
        options: Any = miscompile_workarounds.options(jaxlib_version.__version_info__, self.meshes.platform)
        try:
            with own_compilation():
                return lowered.compile(options or None)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            what = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"XLA cannot compile the fragment @{call.callee} of stage {call.stage} ({what})",
                             location=call.where or None, hint="check the program with hlorewrite opt") from None

    def _lowered(self, fragment: PreparedFragment) -> jax.stages.Lowered:
        """A fragment in JAX's envelope; equal ones for other devices have the same module."""
        call = fragment.call
        inputs = [self._shape(value) for value in call.operands]
        outputs = [self._shape(value) for value in fragment.results]
        if self._token(call):
            everywhere = NamedSharding(self.meshes.jax_mesh(call.mesh), PartitionSpec())
            outputs.append(jax.ShapeDtypeStruct((), np.int8, sharding=everywhere))
        module = self._modules.get(fragment.shared) if fragment.shared else None
        if module is None:
            buffer = io.BytesIO()
            fragment.module.operation.write_bytecode(file=buffer)
            module = self._modules[fragment.shared] = private.parsed_beside(self._shell, buffer.getvalue())
        return private.with_signature(self._shell, module, inputs, outputs)

    @functools.cached_property
    def _shell(self) -> jax.stages.Lowered:
        """What lends fragments its envelope: any function that is lowered for the platform."""
        device = next(iter(self.meshes.devices.values()))
        return jax.jit(lambda: np.int8(0), out_shardings=SingleDeviceSharding(device)).lower()

    def _shape(self, value: int) -> jax.ShapeDtypeStruct:
        type_ = self.types[value]
        if type_ not in self._shapes:
            self._shapes[type_] = jax.ShapeDtypeStruct(type_.shape, numpy_type(type_),
                                                       sharding=self.meshes.sharding(type_))
        return self._shapes[type_]

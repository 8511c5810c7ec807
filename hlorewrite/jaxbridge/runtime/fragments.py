"""Fragments of a program as compiled functions of arrays.

A fragment's function becomes ``@main`` of a module of its own, with its mesh and the functions it calls. A jitted
function of the same signature lends JAX's envelope (shardings, C++ dispatch), as in the decorator.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, readable, symbol_name, terminator
from hlorewrite.jaxbridge.runtime.compile_once import ExecutableStore, compile_all, spread
from hlorewrite.jaxbridge.runtime.meshes import PlacedMeshes, numpy_type
from hlorewrite.jaxbridge.xla import private, protection
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.platform_passes import legal_module
from hlorewrite.mpmd.program import FragmentCall
from hlorewrite.mpmd.types import MeshTensor

Compiled = Callable[..., Sequence[jax.Array]]
Key = tuple[str, tuple[Any, ...]]
_COLLECTIVE = re.compile(r"= .*\b(all-reduce|all-gather|reduce-scatter|collective-|all-to-all|ragged-all)")
_SHARDING, _DONOR = "sdy.sharding", "jax.buffer_donor"


@dataclass
class Fragments:
    """Compiles fragments; equal ones on the same devices once.

    Args:
      module: the program's module.
      meshes: its meshes on devices.
      types: types of the program's values.
      tokens: whether fragments over several devices return one more result, a scalar that is ready when they have
        run: results may be donated to others before they can be waited for.
    """

    module: Module
    meshes: PlacedMeshes
    types: Sequence[MeshTensor]
    tokens: bool = False
    _known: dict[Key, jax.stages.Compiled] = field(default_factory=dict, repr=False)
    _of_call: dict[tuple[str, frozenset[int]], Key] = field(default_factory=dict, repr=False)
    _waiting: set[str] = field(default_factory=set, repr=False)
    _store: ExecutableStore = field(default_factory=ExecutableStore, repr=False)

    @property
    def compilations(self) -> int:
        """How many programs XLA was given; those it read for other devices are not counted."""
        return len(self._known) - self._store.read

    def compile_all(self, calls: Sequence[tuple[FragmentCall, frozenset[int]]], done: Callable[[str], None]) -> None:
        """Compiles fragments, several at a time; equal ones once, also those of different meshes.

        Args:
          calls: a call of each fragment, and the positions of operands whose buffers it takes over.
          done: called with the name of each fragment that is compiled.

        Raises:
          InputError: XLA refuses a fragment.
        """
        work: dict[Key, tuple[str, Callable[[], jax.stages.Compiled]]] = {}
        names: dict[Key, list[FragmentCall]] = {}
        for call, donated in calls:
            if (call.callee, donated) in self._of_call:
                continue
            key, shared, compile_it = self._prepared(call, donated)
            self._of_call[call.callee, donated] = key
            names.setdefault(key, []).append(call)
            if key not in self._known:
                work[key] = shared, compile_it
        self._known |= compile_all(work, self._store, lambda key: done(names[key][0].callee))
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
        return self._known[self._of_call[call.callee, donated]]

    def _prepared(self, call: FragmentCall, donated: frozenset[int]
                  ) -> tuple[Key, str, Callable[[], jax.stages.Compiled]]:
        """A fragment's key, what other meshes' fragments share with it, and what compiles it."""
        alone = standalone(self.module, call.callee, call.mesh, donated, self._token(call))
        legal = legal_module(alone, self.meshes.platform)
        shapes = [self.types[value] for value in (*call.operands, *call.results)]
        devices = self.meshes.of_mesh(call.mesh)
        text = f"{legal.text()} {[each.spec for each in shapes]}"
        key = hashlib.sha256(text.encode()).hexdigest(), devices
        # Equal fragments of different meshes differ in the mesh's name only. On GPUs this was not tried.
        mesh = re.compile(rf"@{re.escape(call.mesh)}\b")
        shared = f"{mesh.sub('@mesh', text)} {len(devices)}" if self.meshes.platform == "cpu" and \
            not spread(devices) else ""
        with legal.context:
            legal.operation.attributes["sym_name"] = ir.StringAttr.get(call.callee)
        return key, shared, lambda: self._compile(call, legal)

    def waits(self, call: FragmentCall) -> bool:
        """Whether a compiled fragment holds collectives, in which its devices wait for each other."""
        return call.callee in self._waiting

    def _token(self, call: FragmentCall) -> bool:
        return self.tokens and len(self.meshes.of_mesh(call.mesh)) > 1

    def _compile(self, call: FragmentCall, module: Module) -> jax.stages.Compiled:
        buffer = io.BytesIO()
        module.operation.write_bytecode(file=buffer)
        inputs = [self._shape(value) for value in call.operands]
        outputs = [self._shape(value) for value in call.results]
        if self._token(call):
            everywhere = NamedSharding(self.meshes.jax_mesh(call.mesh), PartitionSpec())
            outputs.append(jax.ShapeDtypeStruct((), jnp.int8, sharding=everywhere))
        shell = jax.jit(lambda *_: tuple(jnp.zeros(each.shape, each.dtype) for each in outputs), keep_unused=True,
                        in_shardings=tuple(each.sharding for each in inputs),
                        out_shardings=tuple(each.sharding for each in outputs))
        # Constants of the shell are replaced with everything else in it; only its signature counts.
        lowered = shell.lower(*inputs)
        swapped = jax.stages.Lowered(private.with_module(lowered, buffer.getvalue()), **private.lowered_fields(lowered))
        options: Any = protection.options(jaxlib_version.__version_info__, self.meshes.platform)
        try:
            with own_compilation():
                return swapped.compile(options or None)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            what = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"XLA does not compile the fragment @{call.callee} of stage {call.stage} ({what})",
                             location=call.where or None, hint="check the program with hlorewrite opt") from None

    def _shape(self, value: int) -> jax.ShapeDtypeStruct:
        type_ = self.types[value]
        return jax.ShapeDtypeStruct(type_.shape, numpy_type(type_), sharding=self.meshes.sharding(type_))


def standalone(module: Module, callee: str, mesh: str, donated: frozenset[int] = frozenset(),
               token: bool = False) -> Module:
    """A fragment as a module of its own.

    Args:
      module: the program; it is not changed.
      callee: name of the fragment's function.
      mesh: name of its mesh.
      donated: positions of arguments whose buffers it may write over.
      token: whether it gets one more result, the 8-bit integer 0.

    Returns:
      A module whose ``@main`` is the fragment.

    Raises:
      InputError: the module has no such mesh.
    """
    view = View(module)
    meshes = [op for op in view.ops("sdy.mesh") if symbol_name(op) == mesh]
    if not meshes:
        raise InputError(f"the module holds no sdy.mesh @{mesh}", location=module.name,
                         hint="name the meshes of the topology, so that shardings can name them")
    with module.context:
        location = ir.Location.name(callee, context=module.context)
        alone = Module(ir.Module.create(location), name=f"{module.name}@{callee}")
        alone.mlir.body.append(_logical(meshes[0]))
        for name in _reached(view, callee):
            alone.mlir.body.append(view.functions[name].clone())
        fresh = View(alone)
        main = fresh.functions[callee]
        if _reordered(meshes[0]) and fresh.ops(*COLLECTIVES, "stablehlo.partition_id"):
            raise InputError(f"@{callee} has explicit collectives over mesh @{mesh}, which numbers its devices in an "
                             "order of its own", location=view.source(view.functions[callee]),
                             hint="give the order in the program's topology")
        devices = sdy_size(meshes[0])
        i32 = ir.IntegerType.get_signless(32)
        for attribute, count in (("mhlo.num_partitions", devices), ("mhlo.num_replicas", 1)):
            alone.operation.attributes[attribute] = ir.IntegerAttr.get(i32, count)
        _become_main(main, donated)
        if token:
            _add_token(main, mesh)
    return alone


def sdy_size(mesh: ir.Operation) -> int:
    """Number of devices of an ``sdy.mesh``."""
    size = 1
    for axis in sdy.MeshAttr(mesh.attributes["mesh"]).axes:
        size *= sdy.MeshAxisAttr(axis).size
    return size


def _reordered(mesh: ir.Operation) -> bool:
    ids = list(sdy.MeshAttr(mesh.attributes["mesh"]).device_ids)
    return ids != sorted(ids)


def _logical(mesh: ir.Operation) -> ir.Operation:
    """The mesh with its devices numbered from 0: the executable's own devices are given in the mesh's order."""
    copy = mesh.clone().operation
    axes = list(sdy.MeshAttr(mesh.attributes["mesh"]).axes)
    copy.attributes["mesh"] = sdy.MeshAttr.get(axes)
    return copy


def _reached(view: View, callee: str) -> list[str]:
    """A function and all it calls."""
    names, todo = [callee], [callee]
    # Ends: a name is added once.
    while todo:
        for called in sorted(_called(view.functions[todo.pop()])):
            if called in view.functions and called not in names:
                names.append(called)
                todo.append(called)
    return names


def _called(function: ir.Operation) -> set[str]:
    """Symbols that the ops of a function name in an attribute."""
    callees: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        for named in op.attributes:
            attribute = readable(op, named)
            if isinstance(attribute, ir.FlatSymbolRefAttr):
                callees.add(attribute.value)
            elif isinstance(attribute, ir.ArrayAttr):
                callees.update(each.value for each in attribute if isinstance(each, ir.FlatSymbolRefAttr))
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return callees


def _become_main(function: ir.Operation, donated: frozenset[int]) -> None:
    """Renames a fragment's function and keeps of its attributes what XLA asks for."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for name in ("mesh_shape", "topology"):
        if name in function.attributes:
            del function.attributes[name]
    function.attributes["sym_name"] = ir.StringAttr.get("main")
    function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    for key, count in (("arg_attrs", len(type_.inputs)), ("res_attrs", len(type_.results))):
        rows = list(ir.ArrayAttr(function.attributes[key])) if key in function.attributes else [None] * count
        kept = []
        for position, row in enumerate(rows):
            facts = {} if row is None or _SHARDING not in ir.DictAttr(row) else {_SHARDING: ir.DictAttr(row)[_SHARDING]}
            if key == "arg_attrs" and position in donated:
                facts[_DONOR] = ir.BoolAttr.get(True)
            kept.append(ir.DictAttr.get(facts))
        if count:
            function.attributes[key] = ir.ArrayAttr.get(kept)


def _add_token(function: ir.Operation, mesh: str) -> None:
    """Gives a function one more result: a constant, replicated."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    end = terminator(function.regions[0].blocks[0])
    with ir.InsertionPoint(end), end.location:
        token = ir.RankedTensorType.get([], ir.IntegerType.get_signless(8))
        value = ir.Attribute.parse("dense<0> : tensor<i8>")
        made = ir.Operation.create("stablehlo.constant", [token], attributes={"value": value})
        ir.Operation.create("func.return", [], [*end.operands, made.results[0]])
        row = ir.DictAttr.get({_SHARDING: ir.Attribute.parse(f"#sdy.sharding<@{mesh}, []>")})
    end.erase()
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*type_.inputs],
                                                                               [*type_.results, token]))
    rows = list(ir.ArrayAttr(function.attributes["res_attrs"])) if len(type_.results) else []
    function.attributes["res_attrs"] = ir.ArrayAttr.get([*rows, row])

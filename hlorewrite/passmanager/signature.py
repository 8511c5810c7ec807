"""The guard of a module's signature: type, attributes and order of arguments and results of its public functions.

XLA and JAX bind buffers by position and read donation (``tf.aliasing_output``, ``jax.buffer_donor``), shardings
(``sdy.sharding``, ``mhlo.sharding``) and layouts from attributes; a pass that loses one makes a wrong program that
still verifies.
"""

from dataclasses import dataclass

from hlorewrite.ir import Module, ir

PLACEMENT = frozenset({"sdy.sharding", "tf.aliasing_output", "jax.buffer_donor"})
"""How arguments and results are spread over devices, and which buffers are donated to which."""


@dataclass(frozen=True)
class FunctionSignature:
    """The interface of one function.

    Attributes:
      inputs: types of the arguments.
      results: types of the results.
      argument_attributes: attributes of each argument, by name.
      result_attributes: attributes of each result, by name.
    """

    inputs: tuple[ir.Type, ...]
    results: tuple[ir.Type, ...]
    argument_attributes: tuple[dict[str, ir.Attribute], ...]
    result_attributes: tuple[dict[str, ir.Attribute], ...]


@dataclass(frozen=True)
class Signature:
    """The interface of a module.

    Attributes:
      functions: the public functions by name.
      attributes: the module's own ``mhlo.*`` attributes (numbers of partitions and replicas).
    """

    functions: dict[str, FunctionSignature]
    attributes: dict[str, ir.Attribute]


def signature_of(module: Module) -> Signature:
    """Reads the signature of a module; cost grows with its functions, not its ops."""
    functions: dict[str, FunctionSignature] = {}
    for op in module.mlir.body.operations:
        if op.operation.name == "func.func" and _public(op.operation):
            functions[ir.StringAttr(op.operation.attributes["sym_name"]).value] = _function_signature(op.operation)
    named = {name: module.operation.attributes[name] for name in module.operation.attributes
             if name.startswith("mhlo.")}
    return Signature(functions, named)


def changes(before: Signature, after: Signature, ignored: frozenset[str] = frozenset()) -> list[str]:
    """The differences, one sentence each, without a final full stop; empty if there are none.

    Args:
      before: the signature as it was.
      after: as it is.
      ignored: attributes of arguments and results that may differ.
    """
    sentences = [f"function @{name} is gone" for name in before.functions if name not in after.functions]
    sentences += [f"a new public function @{name} appeared" for name in after.functions if name not in before.functions]
    for name, signature in before.functions.items():
        if name in after.functions:
            sentences += _function_changes(f"@{name}", signature, after.functions[name], ignored)
    return sentences + _attribute_changes("the module", before.attributes, after.attributes)


def _public(function: ir.Operation) -> bool:
    attributes = function.attributes
    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value == "public"


def _function_signature(function: ir.Operation) -> FunctionSignature:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return FunctionSignature(tuple(type_.inputs), tuple(type_.results),
                             _dictionaries(function, "arg_attrs", len(type_.inputs)),
                             _dictionaries(function, "res_attrs", len(type_.results)))


def _dictionaries(function: ir.Operation, name: str, count: int) -> tuple[dict[str, ir.Attribute], ...]:
    if name not in function.attributes:
        return ({},) * count
    return tuple({a.name: a.attr for a in ir.DictAttr(d)} for d in ir.ArrayAttr(function.attributes[name]))


def _function_changes(owner: str, before: FunctionSignature, after: FunctionSignature,
                      ignored: frozenset[str]) -> list[str]:
    sentences: list[str] = []
    for what, old, new, old_attributes, new_attributes in (
            ("argument", before.inputs, after.inputs, before.argument_attributes, after.argument_attributes),
            ("result", before.results, after.results, before.result_attributes, after.result_attributes)):
        if len(old) != len(new):
            sentences.append(f"{owner} has {len(new)} {what}s instead of {len(old)}")
            continue
        for position, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                sentences.append(f"{what} {position} of {owner} became {b} instead of {a}")
            old, new = ({name: value for name, value in side[position].items() if name not in ignored}
                        for side in (old_attributes, new_attributes))
            sentences += _attribute_changes(f"{what} {position} of {owner}", old, new)
    return sentences


def _attribute_changes(owner: str, before: dict[str, ir.Attribute], after: dict[str, ir.Attribute]) -> list[str]:
    sentences = [f"{owner} lost {name}" for name in before if name not in after]
    sentences += [f"{owner} got {name}" for name in after if name not in before]
    return sentences + [f"{name} of {owner} became {after[name]} instead of {value}" for name, value in before.items()
                        if name in after and after[name] != value]

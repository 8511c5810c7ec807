"""The sharding of every value of a step, as Shardy propagates it over a copy."""

from hlorewrite.errors import InputError
from hlorewrite.ir import View, captured_diagnostics, first_error, ir, nested_ops, passmanager, sdy, symbol_name
from hlorewrite.pipelines.passes.split_stages.step import TrainStep

Spec = tuple[tuple[str, ...], ...]
_NUMBER = "hlorewrite.number"


def spec_of(sharding: ir.Attribute) -> Spec:
    """Per dimension, the axes it is cut over; a part of an axis is left out, since other meshes may not have it."""
    dimensions = sdy.TensorShardingAttr(sharding).dimension_shardings
    axes = [[sdy.AxisRefAttr(axis) for axis in sdy.DimensionShardingAttr(dimension).axes] for dimension in dimensions]
    return tuple(tuple(axis.name for axis in each if axis.sub_axis_info is None) for each in axes)


def read_shardings(step: TrainStep, cut: bool = True) -> list[Spec | None]:
    """Propagates shardings over a copy of the module and notes them for the values of the step.

    Args:
      step: the step; ``step.values.specs`` is filled.
      cut: whether a mesh has several devices. With one device per mesh no value is cut, so only the arguments'
        shardings are recorded.

    Returns:
      The shardings that attributes require of the step's results.

    Raises:
      InputError: propagation fails.
    """
    module = step.view.module
    if not step.view.ops("sdy.mesh"):
        return [None] * len(step.results)
    if not cut:
        return _stated(step, step.main, _rows(step.main, "res_attrs", len(step.results)))
    copy = module.clone()
    type_ = ir.IntegerType.get_signless(64, module.context)
    originals, copies = nested_ops(module.operation), nested_ops(copy.operation)
    for number, op in enumerate(copies):
        op.attributes[_NUMBER] = ir.IntegerAttr.get(type_, number)
    main = View(copy).functions[symbol_name(step.main)]
    given = _rows(main, "res_attrs", len(step.results))
    with captured_diagnostics(copy.context) as diagnostics:
        try:
            passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)", copy.context).run(copy.operation)
        except ir.MLIRError as error:
            told = first_error(diagnostics)
            raise InputError(f"shardings cannot be propagated: {told.message if told else error}",
                             location=module.name, hint="check the step's shardings") from None
    specs = step.values.specs
    for op in nested_ops(copy.operation):
        if _NUMBER not in op.attributes or "sdy.sharding" not in op.attributes or len(op.results) == 0:
            continue
        original = originals[ir.IntegerAttr(op.attributes[_NUMBER]).value]
        shardings = sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings
        for result, sharding in zip(original.results, shardings, strict=True):
            if result in step.values.numbers:
                specs[step.values.number(result)] = spec_of(sharding)
        if original == step.loop:
            body = original.regions[1].blocks[0]
            for argument, sharding in zip(body.arguments, shardings, strict=True):
                if argument in step.values.numbers:
                    specs[step.values.number(argument)] = spec_of(sharding)
    return _stated(step, View(copy).functions[symbol_name(step.main)], given)


def _stated(step: TrainStep, main: ir.Operation, results: list[dict[str, ir.Attribute]]) -> list[Spec | None]:
    """Records the stated shardings of a function's arguments; returns those of its results."""
    for number, row in zip(step.arguments, _rows(main, "arg_attrs", len(step.arguments)), strict=True):
        step.values.specs[number] = spec_of(row["sdy.sharding"]) if "sdy.sharding" in row else None
    return [spec_of(row["sdy.sharding"]) if "sdy.sharding" in row else None for row in results]


def _rows(function: ir.Operation, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    if name not in function.attributes:
        return [{} for _ in range(count)]
    return [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[name])]

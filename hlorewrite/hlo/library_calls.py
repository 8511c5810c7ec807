"""Calls of cuBLAS and cuDNN as what they compute: a matrix product, a convolution.

A call whose settings add anything to that (a factor, a bias, an activation) stays as it is and counts as unknown.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hlorewrite.hlo.parse import HloInstruction
from hlorewrite.hlo.shapes import tuple_parts

_CONVOLUTION = '"__cudnn$convForward"'
_PRODUCTS = ('"__cublas$lt$matmul"', '"__cublas$gemm"')
_PLAIN_CONVOLUTION = {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 0, "leakyrelu_alpha": 0}
_PLAIN_PRODUCT = {"alpha_real": 1, "alpha_imag": 0, "beta": 0, "epilogue": "DEFAULT", "grad_x": False, "grad_y": False,
                  "damax_output": False, "scale_mode": 0}
_KEPT = ("window", "dim_labels", "feature_group_count", "batch_group_count")
_DIMENSIONS = (("lhs_batch_dims", "lhs_batch_dimensions"), ("rhs_batch_dims", "rhs_batch_dimensions"),
               ("lhs_contracting_dims", "lhs_contracting_dimensions"),
               ("rhs_contracting_dims", "rhs_contracting_dimensions"))


def expanded_call(each: HloInstruction, operands: Sequence[str], attributes: Mapping[str, str]) -> list[str] | None:
    """The instructions that compute what a library call does; the last one has its name.

    Args:
      each: a custom call.
      operands: their names.
      attributes: the attributes by name, as HLO writes them.

    Returns:
      Lines of HLO; the library's scratch space is filled with zeros, which nothing reads. None if the call adds
      something that is not known.

    Example:
      >>> from hlorewrite.hlo.parse import HloInstruction
      >>> call = HloInstruction("c", "f32[4]", "custom-call", ("p",), "")
      >>> expanded_call(call, ["p"], {"custom_call_target": '"mine"'}) is None
      True
    """
    target = attributes.get("custom_call_target", "")
    try:
        config = json.loads(attributes.get("backend_config", ""))
    except ValueError:
        return None
    if len(operands) != 2 or not isinstance(config, dict):
        return None
    left, right = operands
    if target == _CONVOLUTION and _plain(config.get("cudnn_conv_backend_config"), _PLAIN_CONVOLUTION, frozenset()):
        kept = "".join(f", {key}={attributes[key]}" for key in _KEPT if key in attributes)
        return _with_scratch(each, f"convolution(%{left}, %{right}){kept}")
    held = config.get("gemm_backend_config")
    if target in _PRODUCTS and _plain(held, _PLAIN_PRODUCT, _OTHER_OF_PRODUCTS):
        assert isinstance(held, dict)
        dimensions = held.get("dot_dimension_numbers")
        if not isinstance(dimensions, dict) or _algorithm(held) != "ALG_UNSET":
            return None
        listed = "".join(f", {name}={{{','.join(map(str, dimensions[key]))}}}" for name, key in _DIMENSIONS
                         if dimensions.get(key))
        return _with_scratch(each, f"dot(%{left}, %{right}){listed}{_precision(held)}")
    return None


_OTHER_OF_PRODUCTS = frozenset({"dot_dimension_numbers", "precision_config", "lhs_stride", "rhs_stride",
                                "autotune_workspace_size", "selected_algorithm"})


def _plain(config: object, plain: Mapping[str, object], others: frozenset[str]) -> bool:
    """Whether settings are the plain ones; a setting that is not known is none of them."""
    return isinstance(config, dict) and all(
        key in others or (key in plain and plain[key] == value) for key, value in config.items())


def _algorithm(config: Mapping[str, Any]) -> str:
    held = config.get("precision_config")
    return str(held.get("algorithm", "ALG_UNSET")) if isinstance(held, dict) else "ALG_UNSET"


def _precision(config: Mapping[str, Any]) -> str:
    held = config.get("precision_config")
    names = [str(name).lower() for name in held.get("operand_precision", [])] if isinstance(held, dict) else []
    return f", operand_precision={{{','.join(names)}}}" if set(names) - {"default"} else ""


def _with_scratch(each: HloInstruction, computed: str) -> list[str]:
    """A result, or a tuple of it and the library's scratch space."""
    if not each.shape.startswith("("):
        return [f"%{each.name} = {each.shape} {computed}"]
    parts = tuple_parts(each.shape)
    lines, names = [f"%{each.name}.result = {parts[0]} {computed}"], [f"%{each.name}.result"]
    for number, part in enumerate(parts[1:]):
        element = part.partition("[")[0]
        lines += [f"%{each.name}.zero{number} = {element}[] constant(0)",
                  f"%{each.name}.scratch{number} = {part} broadcast(%{each.name}.zero{number}), dimensions={{}}"]
        names.append(f"%{each.name}.scratch{number}")
    return [*lines, f"%{each.name} = {each.shape} tuple({', '.join(names)})"]

"""Signatures of ops, read from the op classes of the installed jaxlib.

The generated Python classes of MLIR dialects have one property for each operand, attribute and region; the names in a
property's code show which of the three it is. So the rule checker always knows the ops of the installed jaxlib.
"""

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

DIALECTS = ("chlo", "func", "mpmd", "sdy", "stablehlo")


@dataclass(frozen=True)
class OpSignature:
    """The shape of an op.

    Attributes:
      name: the full op name.
      operands: (name, whether it is variadic) of each operand group.
      attributes: attribute names of the op's definition.
      regions: region names; one name for all when their number varies.
      varying_regions: whether the number of regions varies.
    """

    name: str
    operands: tuple[tuple[str, bool], ...]
    attributes: tuple[str, ...]
    regions: tuple[str, ...]
    varying_regions: bool

    @property
    def fewest_operands(self) -> int:
        """The minimum number of operands."""
        return sum(not variadic for _, variadic in self.operands)

    @property
    def most_operands(self) -> int | None:
        """The maximum number of operands; None without a limit."""
        return None if any(variadic for _, variadic in self.operands) else len(self.operands)


def signature(name: str) -> OpSignature | None:
    """The signature of an op; None when this jaxlib does not know it.

    Example:
      >>> op = signature("stablehlo.all_reduce")
      >>> op.attributes, op.regions, op.fewest_operands, op.most_operands
      (('replica_groups', 'channel_handle', 'use_global_device_ids'), ('computation',), 0, None)
      >>> signature("stablehlo.all_reduse") is None
      True
    """
    return _dialect(name.split(".")[0]).get(name)


def op_names(dialect: str) -> tuple[str, ...]:
    """The ops of a dialect; empty when rules cannot use it."""
    return tuple(_dialect(dialect))


@cache
def _dialect(name: str) -> dict[str, OpSignature]:
    if name not in DIALECTS:
        return {}
    module = importlib.import_module(f"jaxlib.mlir.dialects.{name}")
    classes = [c for c in vars(module).values()
               if hasattr(c, "OPERATION_NAME") and hasattr(c, "_ODS_OPERAND_SEGMENTS")]  # not the adaptors
    return {c.OPERATION_NAME: _read(c) for c in classes}


def _read(cls: Any) -> OpSignature:
    operands: list[tuple[str, bool]] = []
    attributes: list[str] = []
    regions: list[str] = []
    for name, code in _properties(cls):
        touched = code.co_names
        if "attributes" in touched:
            attributes += [c for c in code.co_consts if isinstance(c, str)][:1] or [name.rstrip("_")]
        elif "operands" in touched:
            operands.append((name.rstrip("_"), _many(cls, code)))
        elif "regions" in touched:
            regions.append(name)
    return OpSignature(cls.OPERATION_NAME, tuple(operands), tuple(dict.fromkeys(attributes)), tuple(regions),
                       not cls._ODS_REGIONS[1])


def _properties(cls: Any) -> list[tuple[str, Any]]:
    properties: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.endswith("_mlir.ir"):
            break
        for name, value in vars(base).items():
            code = getattr(getattr(value, "fget", None), "__code__", None)
            if code is not None and not name.startswith("_") and code.co_filename.endswith("_gen.py"):
                properties.setdefault(name, code)
    return list(properties.items())


def _many(cls: Any, code: Any) -> bool:
    """Whether an operand property stands for several values (variadic, optional or in equal groups)."""
    return bool({"len", "_ods_equally_sized_accessor", "_ods_segmented_accessor"} & set(code.co_names)
                or cls._ODS_OPERAND_SEGMENTS is not None)

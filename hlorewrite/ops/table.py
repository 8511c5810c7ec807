"""One row for each op: what kind of op it is. Sets of ops elsewhere are queries of this table.

An op without a row is opaque: nothing may be concluded about it. Two more tables say what single groups of ops mean:
``ir/collectives.py`` for collectives, and ``patterns/linearity.hlopat`` for what is linear in which operands.
"""

from enum import Enum

from hlorewrite.ir.collectives import COLLECTIVES


class OpClass(Enum):
    """How the results of an op are computed."""

    ELEMENTWISE = "each element is a function of the elements at the same place; a scalar operand stands for all places"
    MOVE = "each element is one element of an operand; attributes, and starts of slices, say which"
    INDEXED = "each element is an element of an operand, or a combination of some; a tensor of indices says which"
    REDUCTION = "elements combine along dimensions"
    CONTRACTION = "sums of products"
    SAME = "the operands themselves"
    CONSTANT = "attributes alone"
    DEVICE_ID = "the number of the device"
    RANDOM = "bits from a state"
    CONTROL = "what its regions, or the function it calls, return"
    COLLECTIVE = "values of other devices too"
    TERMINATOR = "no results: its operands are the results of the region"


_MEMBERS = {
    OpClass.ELEMENTWISE: """
        abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
        exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or
        popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
        shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
        chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.cosh chlo.digamma chlo.erf chlo.erf_inv
        chlo.erfc chlo.is_inf chlo.lgamma chlo.log1p chlo.sinh chlo.square""",
    OpClass.MOVE: """
        broadcast_in_dim concatenate dynamic_slice dynamic_update_slice pad reshape reverse slice transpose""",
    OpClass.INDEXED: "gather scatter sort",
    OpClass.REDUCTION: "reduce reduce_window select_and_scatter",
    OpClass.CONTRACTION: "convolution dot_general",
    OpClass.SAME: "optimization_barrier sdy.sharding_constraint sdy.propagation_barrier",
    OpClass.CONSTANT: "constant iota",
    OpClass.DEVICE_ID: "partition_id replica_id",
    OpClass.RANDOM: "rng rng_bit_generator",
    OpClass.CONTROL: "case if while func.call sdy.manual_computation",
    OpClass.TERMINATOR: "return func.return sdy.return mpmd.return",
}
_ROWS = {name if "." in name else f"stablehlo.{name}": op_class
         for op_class, names in _MEMBERS.items() for name in names.split()}
_ROWS |= dict.fromkeys(COLLECTIVES, OpClass.COLLECTIVE)


def op_class(name: str) -> OpClass | None:
    """The class of an op; None for one without a row, about which nothing is known.

    Example:
      >>> op_class("stablehlo.tanh").name, op_class("stablehlo.pad").name, op_class("stablehlo.custom_call")
      ('ELEMENTWISE', 'MOVE', None)
    """
    return _ROWS.get(name)


def ops_of(*classes: OpClass) -> frozenset[str]:
    """The names of the ops of some classes.

    Example:
      >>> sorted(ops_of(OpClass.DEVICE_ID))
      ['stablehlo.partition_id', 'stablehlo.replica_id']
    """
    return frozenset(name for name, each in _ROWS.items() if each in classes)


def _named(names: str) -> tuple[str, ...]:
    return tuple(f"stablehlo.{name}" for name in names.split())


ELEMENTWISE = ops_of(OpClass.ELEMENTWISE)
MOVES = ops_of(OpClass.MOVE)
SAME = ops_of(OpClass.SAME)
TERMINATORS = ops_of(OpClass.TERMINATOR)
SLICES = _named("slice dynamic_slice")
DEVICE_IDS = _named("partition_id replica_id")
MOVES_OF_ONE = MOVES - frozenset(_named("concatenate pad dynamic_update_slice"))
"""Moves of the elements of one operand: if it is filled with one number, so is the result."""
SPREADS = _named("broadcast_in_dim reshape")
"""The ops through which one number reaches every place of a tensor."""
FILLINGS = ops_of(OpClass.CONSTANT) | frozenset(_named("broadcast_in_dim"))
"""Tensors that a kernel can make itself instead of reading them."""
COMMUTATIVE = frozenset(_named("add multiply maximum minimum and or xor"))
"""Elementwise ops with two operands that may be exchanged."""
ROUNDS_NOTHING = MOVES | SAME | frozenset(_named(
    "gather select negate abs maximum minimum clamp real imag"))
"""Ops whose floats are those of their operands, up to the sign."""
SHARDY_COLLECTIVES = ("sdy.all_gather", "sdy.all_reduce", "sdy.all_to_all", "sdy.collective_permute",
                      "sdy.reduce_scatter", "sdy.reshard", "sdy.sharded_to_unreduced")
"""Ops by which Shardy exchanges shards between the devices of a mesh; XLA lowers them when it partitions."""
RAGGED_ALL_TO_ALL_CALL = "ragged_all_to_all"
"""The target of the custom call with which JAX writes a ``ragged-all-to-all``; its groups are in ``backend_config``."""
_SILENT_TARGETS = (
    "Sharding", "SPMD", "xla.sdy.", "sdy_testonly", "annotate_device_placement", "MoveTo", "Pin", "Unpin",
    "AllocateBuffer", "check.", "mhlo.", "chlo.", "stablehlo.", "shape_assertion", "hlorewrite.", "dynamic_", "cu",
    "hip", "lapack_", "ducc_fft", "__cu", "__triton", "__gpu$xla.gpu.triton", "xla_python_", "xla_ffi_python_",
    "xla_ffi_partitioned_python_", "ApproxTopK", "TopK", "PartialReduce", "Qr", "Eigh", "Cholesky", "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors", "X64", "io_callback", "debug_callback", "__op$block_scaled", "__cpu$",
    "Slice", "PadToStatic", "LayoutConstraint", "GetRngSeed", "ShardBarrier", "__onednn", "__xla_internal_call_marker",
    "xla.gpu.ext.cub", "xla_builder.", "triton_kernel_call", "te_fused_attn")


def may_communicate(target: str) -> bool:
    """Whether a custom call may exchange data between devices: each one may, unless its target is known to stay on one
    device.

    Args:
      target: its ``call_target_name``.

    Example:
      >>> may_communicate("cusolver_getrf_ffi"), may_communicate("my_all_reduce")
      (False, True)
    """
    return not target.startswith(_SILENT_TARGETS)

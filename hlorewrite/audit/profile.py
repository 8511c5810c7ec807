"""Reads the kernels of a profile, whichever tool wrote it: ``nsys stats``, or JAX."""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlorewrite.errors import InputError
from hlorewrite.hlo.proto import varint
from hlorewrite.ir import collectives
from hlorewrite.util.read import long_fields

# ---- kernels

# Kernels of a profile, whichever tool wrote it.


_NCCL = re.compile(r"nccl(?:Dev)?Kernel_?([A-Za-z]+?)(?:_|\(|$)")
_EXCHANGES = (collectives.ALL_TO_ALL.kind, collectives.COLLECTIVE_PERMUTE.kind, collectives.RAGGED_ALL_TO_ALL.kind)
_KINDS = {"AllReduce": (collectives.ALL_REDUCE.kind,), "AllGather": (collectives.ALL_GATHER.kind,),
          "ReduceScatter": (collectives.REDUCE_SCATTER.kind,),
          "SendRecv": _EXCHANGES, "AlltoAll": _EXCHANGES, "AllToAll": _EXCHANGES,
          "Broadcast": (collectives.COLLECTIVE_BROADCAST.kind,)}


@dataclass(frozen=True)
class ProfiledKernel:
    """A kernel of a profile: one run of it, or all runs of the kernels with this name added up.

    Attributes:
      name: name of the kernel.
      seconds: total time of its runs.
      runs: how often it ran.
      device: the GPU; empty if the profile adds up all runs.
      start_s: when it began; None if the profile adds up all runs.
      op: the HLO instruction it belongs to; empty if the profile does not say.
    """

    name: str
    seconds: float
    runs: int
    device: str = ""
    start_s: float | None = None
    op: str = ""


def nccl_kinds(kernel: str) -> tuple[str, ...]:
    """The kinds of collectives that a kernel of NCCL may be; empty for other kernels.

    Args:
      kernel: its name.

    Example:
      >>> nccl_kinds("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)")
      ('all-reduce',)
      >>> nccl_kinds("loop_add_fusion_3")
      ()
    """
    match = _NCCL.search(kernel)
    return _KINDS.get(match.group(1), ("?",)) if match else ()


# ---- reads what ``nsys stats --format csv`` writes: the report ``cuda_gpu_kern_sum``, or the trace ``cuda_gpu_trace``


_HOW = ("write it with nsys stats --report cuda_gpu_kern_sum --format csv PROFILE.nsys-rep (or cuda_gpu_trace, which "
        "also distinguishes collectives of one kind)")
_SUM = ("Name", "Total Time (ns)", "Instances")
_TRACE = ("Name", "Start (ns)", "Duration (ns)")
_MOST = 1e18
"""Limit of nanoseconds (thirty years) and of runs, so that results stay finite."""
_COPIES = ("[CUDA mem", "[CUDA memcpy", "[CUDA memset")


def read_nsys(content: bytes, name: str) -> tuple[ProfiledKernel, ...]:
    """Kernels of a report or trace.

    Args:
      content: the CSV file; lines before its headings are skipped.
      name: the name of the file, for messages.

    Returns:
      The kernels, in the order of the file; copies and fills of memory are left out.

    Raises:
      InputError: it lacks the columns of both reports, or a time is not a number.

    Example:
      >>> read_nsys(b'Time (%),Total Time (ns),Instances,Name\\n50.0,3000,2,fusion_1\\n', "sum.csv")
      (ProfiledKernel(name='fusion_1', seconds=3e-06, runs=2, device='', start_s=None, op=''),)
    """
    lines = content.decode(errors="replace").splitlines()
    at = next((number for number, line in enumerate(lines) if _columns(line, _SUM) or _columns(line, _TRACE)), None)
    if at is None:
        raise InputError("is not an nsys statistics file that hlorewrite can read", location=name, hint=_HOW)
    summed = _columns(lines[at], _SUM)
    kernels = []
    with long_fields():
        rows = list(csv.DictReader(io.StringIO("\n".join(lines[at:]))))
    for number, row in enumerate(rows, at + 2):
        kernel = row.get("Name") or ""
        if not kernel or kernel.startswith(_COPIES):
            continue
        place = f"{name}:{number}"
        if summed:
            kernels.append(ProfiledKernel(kernel, _cell(row, "Total Time (ns)", place) * 1e-9,
                                          int(_cell(row, "Instances", place))))
        else:
            kernels.append(ProfiledKernel(kernel, _cell(row, "Duration (ns)", place) * 1e-9, 1,
                                          row.get("Device") or "", _cell(row, "Start (ns)", place) * 1e-9))
    return tuple(kernels)


def _columns(line: str, wanted: tuple[str, ...]) -> bool:
    with long_fields():
        found = next(csv.reader([line]), [])
    return all(each in found for each in wanted)


def _cell(row: dict[str, str], column: str, place: str) -> float:
    try:
        value = float((row.get(column) or "").replace(",", ""))
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MOST:
        raise InputError(f'the column "{column}" contains {str(row.get(column))[:60]!r}', location=place, hint=_HOW)
    return value


# ---- the profile that JAX writes (``*.xplane.pb``), read without TensorFlow: only the fields that say what ran when

# Reads, without TensorFlow, the profile that JAX writes (``*.xplane.pb``): only the few fields that say what ran when.
#
# Source: openxla/xla, third_party/tsl/tsl/profiler/protobuf/xplane.proto. A GPU is a plane ``/device:GPU:N``; its lines
# are streams, and each event of a stream is a kernel, with the HLO instruction in its statistics.


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PLANE_NAME, _PLANE_LINES, _PLANE_EVENTS, _PLANE_STATS = 2, 3, 4, 5
_LINE_NAME, _LINE_START_NS, _LINE_EVENTS = 2, 3, 4
_EVENT_METADATA, _EVENT_OFFSET_PS, _EVENT_DURATION_PS, _EVENT_STATS = 1, 2, 3, 4
_STAT_METADATA, _STAT_TEXT, _STAT_REFERENCE = 1, 5, 7
_NAME = 2
_DEVICE = "/device:GPU:"
_DERIVED = ("XLA ", "Steps", "Source", "TensorFlow", "Framework", "Launch")
"""Lines that the profiler derives from the streams."""

Field = tuple[int, int, bytes | int]


def read_xplane(content: bytes, name: str) -> tuple[ProfiledKernel, ...]:
    """Kernels of all GPUs of a profile.

    Args:
      content: the file.
      name: the name of the file, for messages.

    Returns:
      One entry for each run of a kernel.

    Raises:
      InputError: the file is damaged, or contains no GPU.
    """
    kernels: list[ProfiledKernel] = []
    devices = 0
    try:
        for number, wire, plane in _fields(content):
            if number == 1 and wire == _BYTES and isinstance(plane, bytes):
                fields = list(_fields(plane))
                device = _text(fields, _PLANE_NAME)
                if device.startswith(_DEVICE):
                    devices += 1
                    kernels += _plane(fields, device.removeprefix("/device:"))
    except (IndexError, ValueError):
        raise InputError("is damaged, or not a profile of JAX", location=name,
                         hint="pass the *.xplane.pb below the folder of jax.profiler.trace") from None
    if not devices:
        raise InputError("contains no GPU", location=name, hint="profile the step where it runs on GPUs")
    return tuple(kernels)


def _plane(fields: list[Field], device: str) -> Iterator[ProfiledKernel]:
    events, stats = _names(fields, _PLANE_EVENTS), _names(fields, _PLANE_STATS)
    op_ids = {number for number, name in stats.items() if name == "hlo_op"}
    for line in _messages(fields, _PLANE_LINES):
        if _text(line, _LINE_NAME).startswith(_DERIVED):
            continue
        begins = _number(line, _LINE_START_NS) * 1e-9
        for event in _messages(line, _LINE_EVENTS):
            op = next((found for stat in _messages(event, _EVENT_STATS)
                       if _number(stat, _STAT_METADATA) in op_ids
                       and (found := _text(stat, _STAT_TEXT) or stats.get(_number(stat, _STAT_REFERENCE), ""))), "")
            kernel = events.get(_number(event, _EVENT_METADATA), "")
            if kernel and not kernel.startswith(("Memcpy", "Memset")):
                yield ProfiledKernel(kernel, _number(event, _EVENT_DURATION_PS) * 1e-12, 1, device,
                                     begins + _number(event, _EVENT_OFFSET_PS) * 1e-12, op)


def _names(fields: list[Field], wanted: int) -> dict[int, str]:
    """Names by number, from a map of metadata."""
    names: dict[int, str] = {}
    for entry in _messages(fields, wanted):
        for value in _messages(entry, 2):
            names[_number(entry, 1)] = _text(value, _NAME)
    return names


def _messages(fields: list[Field], wanted: int) -> Iterator[list[Field]]:
    for number, wire, value in fields:
        if number == wanted and wire == _BYTES and isinstance(value, bytes):
            yield list(_fields(value))


def _text(fields: list[Field], wanted: int) -> str:
    return next((value.decode(errors="replace") for number, _, value in fields
                 if number == wanted and isinstance(value, bytes)), "")


def _number(fields: list[Field], wanted: int) -> int:
    return next((value for number, _, value in fields if number == wanted and isinstance(value, int)), 0)


def _fields(data: bytes) -> Iterator[Field]:
    """(number, wire type, value) of each field of a protocol buffer message."""
    at = 0
    while at < len(data):  # Ends: each round reads at least a byte.
        key, at = varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = varint(data, at)
        elif wire == _BYTES:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(data) or key < 8:
            raise ValueError("cut short")
        yield key >> 3, wire, value

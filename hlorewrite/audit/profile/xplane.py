"""Reads, without TensorFlow, the profile that JAX writes (``*.xplane.pb``): only the few fields that say what ran when.

Source: openxla/xla, third_party/tsl/tsl/profiler/protobuf/xplane.proto. A GPU is a plane ``/device:GPU:N``; its lines
are streams, and each event of a stream is a kernel, with the HLO instruction in its statistics.
"""

from collections.abc import Iterator

from hlorewrite.audit.profile.kernels import ProfiledKernel
from hlorewrite.errors import InputError
from hlorewrite.hlo.proto import varint

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

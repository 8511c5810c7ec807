"""Reads what ``nsys stats --format csv`` writes: the report ``cuda_gpu_kern_sum``, or the trace ``cuda_gpu_trace``."""

import csv
import io
import math

from hlorewrite.audit.profile.kernels import ProfiledKernel
from hlorewrite.errors import InputError
from hlorewrite.util.read import long_fields

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
            kernels.append(ProfiledKernel(kernel, _number(row, "Total Time (ns)", place) * 1e-9,
                                          int(_number(row, "Instances", place))))
        else:
            kernels.append(ProfiledKernel(kernel, _number(row, "Duration (ns)", place) * 1e-9, 1,
                                          row.get("Device") or "", _number(row, "Start (ns)", place) * 1e-9))
    return tuple(kernels)


def _columns(line: str, wanted: tuple[str, ...]) -> bool:
    with long_fields():
        found = next(csv.reader([line]), [])
    return all(each in found for each in wanted)


def _number(row: dict[str, str], column: str, place: str) -> float:
    try:
        value = float((row.get(column) or "").replace(",", ""))
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MOST:
        raise InputError(f'the column "{column}" contains {str(row.get(column))[:60]!r}', location=place, hint=_HOW)
    return value

"""Writes result files whole or not at all, and matrices as .npy, .npz or .csv."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hlorewrite.errors import OutputError, UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MATRIX_ENDINGS = (".npy", ".npz", ".csv")


def write_file(path: str | Path, content: bytes) -> None:
    """Writes a file through a temporary one beside it.

    Args:
      path: where.
      content: what.

    Raises:
      OutputError: the place cannot be written; nothing is left behind.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=target.name + ".", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror}", location=str(path), hint="check the folder") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except OSError as error:
        with suppress(OSError):
            Path(name).unlink()
        raise OutputError(f"cannot write: {error.strerror}", location=str(path), hint="check the place") from None


def check_matrix_path(path: str) -> None:
    """Refuses a matrix file whose ending says no known form.

    Raises:
      UsageError: names the endings.
    """
    if not path.endswith(MATRIX_ENDINGS):
        raise UsageError(f'"{path}" has no known ending', hint=f"end it in one of {', '.join(MATRIX_ENDINGS)}")


def write_matrix(path: str, total: Array, parts: Mapping[str, Array]) -> None:
    """Writes a traffic matrix: bytes from row to column.

    Args:
      path: ``.npy`` or ``.csv`` for the total, ``.npz`` for ``total`` and each part by name.
      total: shape (GPUs, GPUs).
      parts: matrices of the same shape by category.
    """
    import numpy as np
    check_matrix_path(path)
    if path.endswith(".csv"):
        rows = [",".join(repr(float(value)) for value in row) for row in total]
        write_file(path, ("\n".join(rows) + "\n").encode())
        return
    out = io.BytesIO()
    if path.endswith(".npy"):
        np.save(out, total)
    else:
        named: dict[str, Array] = {"total": total, **parts}
        np.savez(out, **named)  # pyright: ignore[reportArgumentType]
    write_file(path, out.getvalue())

"""Writes result files whole or not at all, and matrices as .npy, .npz or .csv."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hlorewrite.errors import OutputError, UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MATRIX_ENDINGS = (".npy", ".npz", ".csv")
_MOST_LINKS = 40
_NO_SPACE = "free space there, or name a file elsewhere"
_HINTS = {errno.ENOSPC: _NO_SPACE, errno.EDQUOT: _NO_SPACE, errno.EFBIG: _NO_SPACE,
          errno.EPIPE: "its reader ended before reading all of it",
          errno.ELOOP: "its symbolic links point to each other"}
"""What to do about an error number; for others, the folder is at fault."""


def user_cache(name: str, environment: Mapping[str, str]) -> Path:
    """A folder for files that can be made again: ``$XDG_CACHE_HOME/hlorewrite/NAME``, or the same below ``~/.cache``.

    Args:
      name: what the files are.
      environment: that of the process.

    Example:
      >>> user_cache("tune", {"XDG_CACHE_HOME": "/c"}).as_posix()
      '/c/hlorewrite/tune'
    """
    base = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "hlorewrite" / name


def write_output(path: str, content: bytes) -> None:
    """Writes a file as ``write_file`` does; ``-`` is standard output.

    Args:
      path: the file, or ``-``.
      content: the bytes to write.

    Raises:
      OutputError: the file cannot be written.
    """
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_file(path, content)


def write_file(path: str | Path, content: bytes) -> None:
    """Writes a file whole or not at all: a temporary file in the same folder is written, then renamed.

    A symbolic link is followed, and the file it points to is replaced. An existing file keeps its mode; a new one gets
    the mode the umask allows. A path that is not a regular file (a FIFO, ``/dev/null``, ``/dev/stdout``) is written in
    place. The content is not flushed to the disk with ``fsync``: a result lost in a power failure can be computed
    again.

    Args:
      path: the file; its folder must exist.
      content: the bytes to write.

    Raises:
      OutputError: the file cannot be written; an existing file is unchanged, and no temporary file is left.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     write_file(Path(folder) / "a.txt", b"first")
      ...     write_file(Path(folder) / "a.txt", b"second")
      ...     [(each.name, each.read_text()) for each in Path(folder).iterdir()]
      [('a.txt', 'second')]
    """
    try:
        target = _followed(os.fspath(path))
        if _in_proc(target) or (os.path.exists(target) and not os.path.isfile(target)):
            _write_in_place(target, content)
        else:
            _replace(target, content)
    except OSError as error:
        raise OutputError(f"cannot be written ({os.strerror(error.errno or 0)})", location=str(path),
                          hint=_HINTS.get(error.errno or 0, "check that the folder exists and is writable")) from None


def _followed(path: str) -> str:
    """The path that a chain of symbolic links ends at, which need not exist; links of ``/proc`` are not followed."""
    for _ in range(_MOST_LINKS):
        if _in_proc(path) or not os.path.islink(path):
            return path
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    raise OSError(errno.ELOOP, "")


def _in_proc(path: str) -> bool:
    """Whether a path is in ``/proc``, where links stand for open files; ``/dev/stdout`` points there."""
    return os.path.realpath(os.path.dirname(path) or ".").startswith("/proc/")


def _write_in_place(path: str, content: bytes) -> None:
    folder, name = os.path.split(path)
    if name.isdigit() and os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
        # One of our own open files: opening it again would start at offset 0 and truncate what was printed before.
        sys.stdout.flush()
        handle = os.dup(int(name))
    else:
        handle = os.open(path, os.O_WRONLY)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _replace(path: str, content: bytes) -> None:
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else None
    temporary = os.path.join(os.path.dirname(path), f".hlorewrite-{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)  # the umask may have taken bits away
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def check_matrix_path(path: str) -> None:
    """Refuses a matrix file whose ending names no known form.

    Raises:
      UsageError: names the endings.
    """
    if not path.endswith(MATRIX_ENDINGS):
        raise UsageError(f'"{path}" has an unknown file extension',
                         hint=f"use a name that ends in one of {', '.join(MATRIX_ENDINGS)}")


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

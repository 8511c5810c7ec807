"""Freed memory goes back to the system, so that the next compilation can use it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from hlorewrite.jaxbridge.xla.compile_no_codegen import give_back_freed_memory


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
                    reason="needs glibc, which can return freed memory")
def test_pieces_between_others_go_back() -> None:
    """Without a request, the C library keeps freed blocks below one that is still used."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes, library.free.argtypes = (
        ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p])
    blocks = [library.malloc(1 << 16) for _ in range(2000)]
    for block in blocks:
        ctypes.memset(block, 1, 1 << 16)
    for block in blocks[:-1]:
        library.free(block)
    before = resident()
    give_back_freed_memory()
    assert before - resident() > 60 << 20
    library.free(blocks[-1])

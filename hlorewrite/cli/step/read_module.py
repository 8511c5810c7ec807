"""A module as the commands that compile take it: StableHLO in each of its forms, or HLO that is not scheduled yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlorewrite.cli.process import stage

if TYPE_CHECKING:
    from hlorewrite.ir import Module


def read_module(data: bytes, name: str) -> Module:
    """The module of any input that is compiled: StableHLO in each of its forms, or HLO that is not scheduled yet.

    Args:
      data: the content.
      name: the name of the file, for messages.

    Raises:
      InputError: it cannot be read, or is scheduled already.
    """
    from hlorewrite.cost.report.collectives import looks_like_hlo
    from hlorewrite.errors import InputError
    from hlorewrite.hlo.parse import is_scheduled
    from hlorewrite.ir.load import parse
    if not looks_like_hlo(data):
        return parse(data, name=name)
    text = hlo_text(data.decode(errors="replace"), name)
    if is_scheduled(text):
        raise InputError("this HLO is the result of a compilation", location=name,
                         hint="report, lint, timeline and audit read it; to compile, pass HLO before optimisations")
    from hlorewrite.jaxbridge.xla.hlo_text import import_hlo
    return import_hlo(text, name)


def hlo_text(text: str, name: str) -> str:
    """HLO text as XLA prints it; what is written in another way goes through XLA's own parser.

    Args:
      text: the content of a file.
      name: the name of the file, for messages.

    Raises:
      InputError: it cannot be read: the line, and why.
    """
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.errors import InputError
    from hlorewrite.hlo.parse import parse_hlo
    try:
        parse_hlo(text)
        return text
    except InputError as error:
        quiet_xla("cpu")
        stage(f"{name}: while it was read", of="XLA")
        try:
            from hlorewrite.jaxbridge.xla.hlo_text import printed_by_xla
        except ImportError:  # without jax there is no second reader
            error.location = name
            raise error from None
        with _without_stderr():
            return printed_by_xla(text, name, error)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Keeps quiet what C++ writes to standard error: a text on which XLA's parser aborts would print its stack."""
    kept = os.dup(2)
    quiet = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(quiet, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(quiet)

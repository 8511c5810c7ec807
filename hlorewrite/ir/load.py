"""Reading modules: MLIR text, MLIR bytecode, StableHLO portable artifacts, serialized ``jax.export``."""

import math
import os
import re
import stat
import sys

from hlorewrite.errors import InputError
from hlorewrite.ir import binding, export_file
from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import Diagnostic, captured_diagnostics, first_error, new_context
from hlorewrite.ir.module import Format, Module
from hlorewrite.util.read import READ_GUARD
from hlorewrite.util.sizes import MOST_DEVICES

_PRODUCER = re.compile(rb"ML\xefR[^\0]{1,5}?StableHLO_v([0-9]+(?:\.[0-9]+)*)\0", re.DOTALL)
_HLO = re.compile(rb"(?:\s*//[^\n]*\n)*\s*HloModule\s")
_OWN_LOCATIONS = re.compile(r"^(?!\s*//)(?:#loc|.*\bloc\()", re.MULTILINE)  # not those in comments
_POSITION = re.compile(r'"(?:[^"\\]|\\.)*":(\d+):(\d+)')
_COUNTS = ("mhlo.num_replicas", "mhlo.num_partitions")
_EXPECTED = ("hlorewrite reads MLIR text, MLIR bytecode, StableHLO portable artifacts and serialized jax.export files; "
             "one that was cut short must be written again")


def detect(data: bytes) -> Format:
    """Detects a file's form by its content.

    Args:
      data: the whole file.

    Returns:
      ``BYTECODE``, ``PORTABLE`` or ``EXPORT``; ``TEXT`` for everything else.

    Example:
      >>> detect(b"module {}").value
      'text'
    """
    if data.startswith(b"ML\xefR"):
        return Format.PORTABLE if _PRODUCER.match(data[:64]) else Format.BYTECODE
    return Format.EXPORT if export_file.is_export(data) else Format.TEXT


def load(path: str, *, context: ir.Context | None = None, allow_unregistered: bool = False) -> Module:
    """Reads a module from a file or, for ``-``, from standard input.

    Args:
      path: the file, or ``-``.
      context: the context to parse into; a new one by default.
      allow_unregistered: accept ops of unknown dialects in generic form.

    Returns:
      The verified module.

    Raises:
      InputError: the file is missing, empty, cut short, not MLIR, or of a newer StableHLO.
    """
    return parse(read_bytes(path), name=path, context=context, allow_unregistered=allow_unregistered)


def read_bytes(path: str) -> bytes:
    """Reads a file or standard input; errors are one line."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty() and not os.path.samefile(
                    path, os.devnull):
                raise InputError("is a device", location=path, hint="name a file, a pipe, or - for standard input")
            return file.read()
    except FileNotFoundError:
        raise InputError("no such file", location=path, hint="check the path") from None
    except IsADirectoryError:
        raise InputError("is a directory", location=path, hint="name a file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({reason})", location=path, hint="check its permissions") from None


def parse(data: bytes | str, *, name: str = "-", context: ir.Context | None = None,
          allow_unregistered: bool = False, first_line: int = 1) -> Module:
    """Parses a module of any form.

    Args:
      data: the bytes of the file, or MLIR text.
      name: the file's name for messages and locations.
      context: the context to parse into; a new one by default.
      allow_unregistered: accept ops of unknown dialects in generic form.
      first_line: the line of the file on which text starts (for files split in parts).

    Returns:
      The verified module.

    Raises:
      InputError: with file, line and column, when the content cannot be parsed.

    Example:
      >>> parse("func.func @f() { return }").format.value
      'text'
    """
    raw = data.encode() if isinstance(data, str) else data
    shown = "<stdin>" if name == "-" else name
    if not raw.strip():
        raise InputError("the file is empty", location=f"{shown}:1:1", hint="write a StableHLO module to it")
    context = context or new_context(allow_unregistered)
    if allow_unregistered:
        context.allow_unregistered_dialects = True
    form = detect(raw)
    with READ_GUARD.around(shown, len(raw)):  # also of text: one number can stand for a table that fills the memory
        read = (_parse_text(raw, shown, context, first_line) if form is Format.TEXT
                else _parse_binary(raw, name, form, context))
    _refuse_too_many_devices(read.mlir, shown)
    return read


def _parse_binary(raw: bytes, name: str, form: Format, context: ir.Context) -> Module:
    shown = "<stdin>" if name == "-" else name
    if form is Format.BYTECODE:
        return Module(_parse_bytecode(raw, shown, context), name, form, has_locations=True)
    artifact = export_file.module_bytes(raw) if form is Format.EXPORT else raw
    module, version = _parse_portable(artifact, shown, context)
    return Module(module, name, form, raw if form is Format.EXPORT else None, version, has_locations=True)


def _refuse_too_many_devices(module: ir.Module, shown: str) -> None:
    """Refuses a module whose tables of devices would fill the memory.

    Raises:
      InputError: a count is not a number of at least one, or a mesh, or replicas times partitions, have more than
        ``MOST_DEVICES`` devices.
    """
    attributes = module.operation.attributes
    stated = {name: attributes[name] for name in _COUNTS if name in attributes}
    for name, attribute in stated.items():
        if not isinstance(attribute, ir.IntegerAttr):
            raise InputError(f"{name} is {attribute}, which is not a number", location=shown,
                             hint="write it as 4 : i32")
        if ir.IntegerAttr(attribute).value < 1:
            raise InputError(f"{name} is {ir.IntegerAttr(attribute).value}, and a module runs on at least one device",
                             location=shown, hint="write 1 for a module of one device")
    sizes = [math.prod(ir.IntegerAttr(attribute).value for attribute in stated.values())]
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            mesh = binding.sdy.MeshAttr(op.operation.attributes["mesh"])
            sizes.append(math.prod(binding.sdy.MeshAxisAttr(axis).size for axis in mesh.axes))
    if max(sizes) > MOST_DEVICES:
        raise InputError(f"the module is for {max(sizes)} devices", location=shown,
                         hint=f"at most {MOST_DEVICES} are read")


def _parse_text(raw: bytes, shown: str, context: ir.Context, first_line: int) -> Module:
    if _HLO.match(raw):
        raise InputError("is HLO text, but this command reads StableHLO", location=shown,
                         hint="report, lint, timeline and audit read HLO; export the step for everything else")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError("the file is neither MLIR text nor a binary form of MLIR", location=f"{shown}:1:1",
                         hint=_EXPECTED)
    with captured_diagnostics(context) as diagnostics:
        try:
            module = ir.Module.parse("\n" * (first_line - 1) + text, context)
        except ir.MLIRError as error:
            diagnostics.extend(Diagnostic("error", str(d.location), d.message) for d in error.error_diagnostics)
            raise _parse_error(diagnostics, shown, context) from None
    return Module(module, shown, Format.TEXT, has_locations="loc(" in text and bool(_OWN_LOCATIONS.search(text)))


def _parse_bytecode(raw: bytes, shown: str, context: ir.Context) -> ir.Module:
    with captured_diagnostics(context) as diagnostics:
        try:
            return ir.Module.parse(raw, context)
        except ir.MLIRError as error:
            diagnostics.extend(Diagnostic("error", str(d.location), d.message) for d in error.error_diagnostics)
            raise _parse_error(diagnostics, shown, context) from None
        except ValueError:  # sizes in a damaged file that no memory can hold
            raise _parse_error(diagnostics, shown, context) from None


def _parse_portable(raw: bytes, shown: str, context: ir.Context) -> tuple[ir.Module, str]:
    match = _PRODUCER.match(raw[:64])
    version = match.group(1).decode() if match else "?"
    newest = binding.stablehlo_version()
    if match and _as_tuple(version) > _as_tuple(newest):
        raise InputError(f"the module uses StableHLO {version}, newer than the {newest} that this jaxlib reads",
                         location=shown, hint="upgrade jaxlib, or export for an older version")
    with captured_diagnostics(context) as diagnostics:
        try:
            module = binding.deserialize_portable(context, raw)
        except (ValueError, ir.MLIRError):
            raise _parse_error(diagnostics, shown, context) from None
    return module, version


def _as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _parse_error(diagnostics: list[Diagnostic], shown: str, context: ir.Context) -> InputError:
    """MLIR's first error as one line: where, what, what to do next."""
    error = first_error(diagnostics) or Diagnostic("error", "", "the module cannot be parsed")
    where = _POSITION.search(error.location)
    position = f"{shown}:{where.group(1)}:{where.group(2)}" if where and where.group(1) != "0" else shown
    what = error.message.splitlines()[0].partition(". If this is intended")[0].rstrip(".")
    return InputError(what, location=position, hint=_parse_hint(what))


def _parse_hint(what: str) -> str:
    if "ialect" in what and ("not found" in what or "unregistered" in what):
        return "use --allow-unregistered-dialect to accept ops of unknown dialects"
    if "custom op" in what or "unregistered op" in what:
        return "check the op's name; hlorewrite reads StableHLO, func, sdy, mpmd and all other dialects that JAX writes"
    if "attempting to parse" in what or "null-terminated" in what or "deserialize" in what:
        return "the file seems cut short or damaged; write it again"
    return "check the text at this position; a file that was cut short must be written again"

"""Writing modules: text, generic text, bytecode, portable artifact, serialized ``jax.export``."""

import io
import re

from hlorewrite.errors import OutputError
from hlorewrite.ir import binding, export_file
from hlorewrite.ir.context import captured_diagnostics, first_error
from hlorewrite.ir.module import Format, Module

_MLIR_ERROR = re.compile(r"\berror: (.*)")


def emit(module: Module, form: Format = Format.TEXT, *, debug_info: bool | None = None,
         elide_over: int | None = None) -> bytes:
    """A module as bytes, in one of the forms.

    Args:
      module: the module.
      form: text, generic text, bytecode, portable artifact or serialized ``jax.export``.
      debug_info: print locations in text; by default when the input carried them, so that they survive.
      elide_over: text only: print constants of more elements than this as ``...``.

    Returns:
      The bytes to write.

    Raises:
      OutputError: ``EXPORT`` was asked for and the module did not come from an export, or it does not serialize.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> print(emit(parse("func.func private @f()")).decode(), end="")
      module {
        func.func private @f()
      }
    """
    if form in (Format.TEXT, Format.GENERIC):
        with_locations = module.has_locations if debug_info is None else debug_info
        return module.text(debug_info=with_locations, generic=form is Format.GENERIC, elide_over=elide_over).encode()
    if form is Format.BYTECODE:
        out = io.BytesIO()
        module.operation.write_bytecode(file=out)
        return out.getvalue()
    artifact = _portable(module)
    if form is Format.PORTABLE:
        return artifact
    if module.envelope is None:
        raise OutputError("the module did not come from a serialized jax.export, so it cannot be written as one",
                          location=module.name, hint="use --emit=portable, or start from an export file")
    return export_file.with_module(module.envelope, artifact)


def _portable(module: Module) -> bytes:
    version = module.version or binding.stablehlo_version()
    with captured_diagnostics(module.context) as diagnostics:
        try:
            return binding.serialize_portable(module.mlir, version)
        except (ValueError, RuntimeError) as raised:  # RuntimeError: jaxlib's, with MLIR's diagnostics in its text
            error = first_error(diagnostics)
            found = _MLIR_ERROR.search(str(raised))
            reason = error.message.splitlines()[0] if error else found[1] if found else ""
            raise OutputError(f"the module cannot be written as a StableHLO {version} portable artifact"
                              + (f" ({reason})" if reason else ""),
                              location=module.name, hint="use --emit=bytecode") from None

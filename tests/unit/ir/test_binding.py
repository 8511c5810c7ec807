"""Each private name of jaxlib that ``hlorewrite.ir.binding`` touches: when a new jaxlib breaks one, it says which."""

from __future__ import annotations

import os
import signal

import pytest

from hlorewrite.ir import binding
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.context import captured_diagnostics, first_error, new_context
from hlorewrite.ir.load import parse

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.add %0, %a : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def test_register_dialects() -> None:
    """jaxlib.mlir._mlir_libs._jax_mlir_ext.register_dialects: all that a JAX module contains can be parsed."""
    context = new_context()
    for name in ("builtin.module", "func.call", "stablehlo.all_reduce", "chlo.erf", "mhlo.copy",
                 "sdy.manual_computation", "mpmd.fragment_call"):
        assert context.is_registered_operation(name), name
    assert not context.is_registered_operation("stablehlo.nope")


def test_op_key_is_the_address() -> None:
    """Operation._CAPIPtr: the same for every handle of an op and after edits, different between ops."""
    module = parse(TEXT)
    block = module.mlir.body.operations[1].regions[0].blocks[0]
    keys = [op_key(op) for op in block.operations]
    assert keys == [op_key(op) for op in block.operations] and len(set(keys)) == 3
    structural = hash(block.operations[0].operation)
    block.operations[0].operands[1] = block.operations[0].operands[0]
    with module.context:
        block.operations[0].attributes["note"] = ir.StringAttr.get("x")
    assert op_key(block.operations[0]) == keys[0]
    assert hash(block.operations[0].operation) != structural  # why operations must not be keys


def test_values_and_blocks_are_safe_keys() -> None:
    """They hash and compare by identity, whichever handle one holds."""
    module = parse(TEXT)
    block = module.mlir.body.operations[1].regions[0].blocks[0]
    assert {block.arguments[0]: 1}[block.operations[0].operands[0]] == 1
    assert {block.operations[0].results[0]: 1}[block.operations[1].operands[0]] == 1
    assert hash(block) == hash(block.operations[0].operation.block) and block == block.operations[0].operation.block


def test_portable_artifacts_keep_other_dialects() -> None:
    """jaxlib._jax.mlir.serialize_portable_artifact(module, version, allow_other_dialects)."""
    module = parse(TEXT)
    data = binding.serialize_portable(module.mlir, binding.stablehlo_version())
    again = binding.deserialize_portable(new_context(), data)
    assert "sdy.mesh @mesh" in str(again) and "sdy.sharding<@mesh" in str(again)


def test_versions_are_numbers() -> None:
    """stablehlo.get_current_version."""
    assert all(part.isdigit() for part in binding.stablehlo_version().split("."))


def test_diagnostics_are_caught_and_survive_strange_text(capfd) -> None:
    """Nothing reaches stderr; a message that is not UTF-8 does not unwind C++ code."""
    context = new_context()
    with captured_diagnostics(context) as diagnostics:
        try:
            ir.Module.parse("func.func @f() { stablehlo.nope }", context)
        except ir.MLIRError as error:
            assert error.error_diagnostics or diagnostics
    assert first_error(diagnostics) is not None or not diagnostics
    assert capfd.readouterr().err == ""


def test_a_signal_while_a_diagnostic_is_read_is_raised_when_the_block_ends(monkeypatch, capfd) -> None:
    """An exception of a signal handler must not unwind C++ code, nor be lost there."""
    class Stopped(BaseException):
        """Raised by the handler."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    def interrupted(*args: object) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    context = new_context()
    try:
        monkeypatch.setattr("hlorewrite.ir.context.Diagnostic", interrupted)
        with pytest.raises(Stopped), captured_diagnostics(context), ir.Location.unknown(context) as location:
            location.emit_error("something")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert capfd.readouterr().err == ""

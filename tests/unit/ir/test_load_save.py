"""Modules in and out: every form, every way a file can be wrong."""

from __future__ import annotations

import re

import pytest

from hlorewrite.errors import InputError, OutputError
from hlorewrite.ir import export_file
from hlorewrite.ir.context import new_context
from hlorewrite.ir.load import detect, load, parse
from hlorewrite.ir.module import Format
from hlorewrite.ir.save import emit

TEXT = """\
#loc1 = loc("train.py":13:14)
module @step attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %cst = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]> : tensor<8xf32>
    %0 = stablehlo.slice %cst [0:4] : (tensor<8xf32>) -> tensor<4xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4xf32> loc(#loc1)
    return %1 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize("form", [Format.TEXT, Format.GENERIC, Format.BYTECODE, Format.PORTABLE])
def test_every_form_round_trips(form: Format) -> None:
    """What is written in a form reads back as the same module, locations included, and is detected by its content."""
    module = parse(TEXT)
    data = emit(module, form)
    again = parse(data)
    assert again.format is (Format.TEXT if form is Format.GENERIC else form)
    assert again.text() == module.text()
    assert 'loc("train.py":13:14)' in again.text(debug_info=True)


def test_text_without_locations_is_written_without() -> None:
    """Positions in the input's own text are not the user's source lines."""
    plain = re.sub(r"^#loc.*\n| loc\(#loc1\)", "", TEXT, flags=re.MULTILINE)
    assert b"loc(" not in emit(parse(plain))
    assert b"loc(" in emit(parse(TEXT))
    assert b"loc(" not in emit(parse(TEXT), debug_info=False)


def test_text_is_stable() -> None:
    """Writing what was read from our own text gives the same bytes."""
    once = emit(parse(TEXT))
    assert emit(parse(once)) == once


def test_large_constants_can_be_elided() -> None:
    """Only above the limit."""
    module = parse(TEXT)
    assert b"__elided__" in emit(module, elide_over=4)
    assert b"__elided__" not in emit(module, elide_over=8)
    assert emit(module, elide_over=10 ** 20) == emit(module)


@pytest.fixture(scope="module")
def exported() -> bytes:
    """A serialized ``jax.export`` of x -> 2·x on four floats."""
    import jax
    import jax.numpy as jnp
    from jax import export
    return bytes(export.export(jax.jit(lambda x: x + x))(jax.ShapeDtypeStruct((4,), jnp.float32)).serialize())


def test_export_envelope_keeps_all_but_the_module(exported: bytes) -> None:
    """A longer and a shorter module both go back into the envelope, and jax runs them."""
    import numpy as np
    from jax import export
    module = parse(exported)
    assert module.format is Format.EXPORT
    x = np.arange(4, dtype=np.float32)
    same = export.deserialize(bytearray(emit(module, Format.EXPORT)))
    np.testing.assert_array_equal(same.call(x), 2 * x)
    text = module.text(debug_info=True).replace("stablehlo.add", "stablehlo.multiply")
    module.mlir = parse(text, context=module.context).mlir
    shorter = export.deserialize(bytearray(emit(module, Format.EXPORT)))
    np.testing.assert_array_equal(shorter.call(x), x * x)
    chain = "".join(f"    %n{i} = stablehlo.negate %{'arg0' if i == 0 else f'n{i - 1}'} : tensor<4xf32>\n"
                    for i in range(100))
    body = re.sub(r"    %0 = stablehlo.multiply %arg0, %arg0", chain + "    %0 = stablehlo.multiply %n99, %n99",
                  module.text(), count=1)
    module.mlir = parse(body, context=module.context).mlir
    longer_bytes = emit(module, Format.EXPORT)
    longer = export.deserialize(bytearray(longer_bytes))
    np.testing.assert_array_equal(longer.call(x), x * x)
    assert longer.in_avals == same.in_avals and longer.fun_name == same.fun_name
    assert parse(longer_bytes).text() == module.text()


def test_an_export_cut_anywhere_is_refused(exported: bytes) -> None:
    """Also where the module inside is whole and only what follows is missing."""
    assert export_file.is_export(exported)
    for end in range(0, len(exported) - 8, 97):
        with pytest.raises(InputError):
            parse(exported[:end])


def test_export_needs_an_export() -> None:
    """Text cannot become an export: the trees and shardings are not in it."""
    with pytest.raises(OutputError, match=r"did not come from a serialized jax\.export"):
        emit(parse(TEXT), Format.EXPORT)


@pytest.mark.parametrize("form", [Format.TEXT, Format.BYTECODE, Format.PORTABLE])
def test_a_file_cut_anywhere_is_one_line(form: Format) -> None:
    """Every cut raises one line that names the file; none passes as a module, none ends the process."""
    data = emit(parse(TEXT), form)
    context = new_context()
    for end in range(0, len(data) - 2, max(1, len(data) // 150)):
        try:
            parse(data[:end], name="cut.bin", context=context)
        except InputError as error:
            assert str(error).startswith("cut.bin") and "\n" not in str(error), end
            assert error.hint, end
        else:
            # Only aliases and comments: MLIR itself takes that for an empty module.
            assert form is Format.TEXT and "module" not in data[:end].decode(), end


@pytest.mark.parametrize(("data", "what"), [
    (b"", "file is empty"),
    (b" \n\n ", "file is empty"),
    (bytes(range(256)) * 4, "neither MLIR text nor a binary form"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "neither MLIR text nor a binary form"),
    (b"ML\xefR", "attempting to parse"),
    (b"ML\xefR" + bytes(100), ""),
    (b"def f(x):\n  return x\n", "custom op 'def'"),
    (b"func.func @f() { bla.bla }", "bla.bla"),
    (b'func.func @f() { "bla.bla"() : () -> () return }', "unregistered dialect"),
    (b"func.func @f() { stablehlo.ad %x }", "stablehlo.ad"),
    (b"func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }", "type of return operand"),
])
def test_wrong_content_is_one_line(data: bytes, what: str) -> None:
    """Where, what, what to do next."""
    with pytest.raises(InputError) as caught:
        parse(data, name="a.mlir")
    assert str(caught.value).startswith("a.mlir") and "\n" not in str(caught.value)
    assert what in caught.value.what and caught.value.hint


def test_errors_point_into_the_file() -> None:
    """Line and column, also when the text is a later part of a file."""
    with pytest.raises(InputError) as caught:
        parse("func.func @f() {\n  stablehlo.nope\n}", name="a.mlir")
    assert caught.value.location == "a.mlir:2:3"
    with pytest.raises(InputError) as caught:
        parse("func.func @f() {\n  stablehlo.nope\n}", name="a.mlir", first_line=11)
    assert caught.value.location == "a.mlir:12:3"


def test_a_newer_stablehlo_is_named() -> None:
    """The version in the producer string decides, before MLIR sees the bytes."""
    data = emit(parse(TEXT), Format.PORTABLE)
    version = re.search(rb"StableHLO_v(\d+\.\d+\.\d+)", data)
    assert version
    newer = b"9" * (len(version.group(1)) - 4) + b".0.0"
    with pytest.raises(InputError, match=r"newer than the \d+\.\d+\.\d+ that this jaxlib reads") as caught:
        parse(data.replace(version.group(1), newer, 1), name="new.bc")
    assert "upgrade jaxlib" in str(caught.value)


def test_an_older_portable_artifact_keeps_its_version() -> None:
    """So that a reader of the old version still reads it."""
    module = parse(emit(parse(TEXT), Format.PORTABLE))
    module.version = "1.4.0"
    data = emit(module, Format.PORTABLE)
    assert b"StableHLO_v1.4.0" in data[:64] and parse(data).version == "1.4.0"


def test_files_that_cannot_be_read(tmp_path) -> None:
    """Missing file and folder."""
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / "no.mlir"))
    with pytest.raises(InputError, match="is a directory"):
        load(str(tmp_path))


def test_unregistered_dialects_on_request() -> None:
    """In generic form only, as in mlir-opt."""
    text = 'func.func @f() {\n  "bla.bla"() : () -> ()\n  return\n}'
    with pytest.raises(InputError) as caught:
        parse(text)
    assert "--allow-unregistered-dialect" in str(caught.value)
    assert '"bla.bla"' in parse(text, allow_unregistered=True).text()


def test_detect() -> None:
    """By content, never by name."""
    module = parse(TEXT)
    assert detect(emit(module, Format.BYTECODE)) is Format.BYTECODE
    assert detect(emit(module, Format.PORTABLE)) is Format.PORTABLE
    assert detect(b"module {}") is Format.TEXT

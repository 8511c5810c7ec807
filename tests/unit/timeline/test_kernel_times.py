"""Bytes and FLOP of kernels, by shapes; rates by type; measured times."""

from __future__ import annotations

import pytest

from hlorewrite.cost import topology
from hlorewrite.cost.kernels.rates import KernelRates, compute_constants, timeline_constants
from hlorewrite.cost.kernels.work import Product
from hlorewrite.errors import InputError
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.timeline.kernel_times import (
    KernelTimes,
    fusion_bytes,
    fusion_products,
    instruction_bytes,
    instruction_products,
)
from hlorewrite.timeline.measured import read_kernel_times


def fused(*lines: str) -> int:
    """Bytes of a fusion of these lines, which read ``%p`` f32[8,128], ``%u`` f32[1,128] and ``%i``."""
    text = "\n".join(["HloModule m", "ENTRY %f (p: f32[8,128], u: f32[1,128], i: s32[]) -> f32[8,128] {",
                      "  %p = f32[8,128]{1,0} parameter(0)", "  %u = f32[1,128]{1,0} parameter(1)",
                      "  %i = s32[] parameter(2)", *(f"  {line}" for line in lines), "}"])
    return fusion_bytes(parse_hlo(text).computations["f"])


WHOLE, ROW, INDEX = 8 * 128 * 4, 128 * 4, 4


@pytest.mark.parametrize(("lines", "moved"), [
    (["ROOT %r = f32[8,128]{1,0} add(%p, %p)"], 2 * WHOLE),
    (["%s = f32[1,128]{1,0} dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,128}",
      "ROOT %r = f32[1,128]{1,0} add(%s, %u)"], 3 * ROW + INDEX),
    (["%c = bf16[8,128]{1,0} convert(%p)",
      "ROOT %r = bf16[1,128]{1,0} dynamic-slice(%c, %i, %i), dynamic_slice_sizes={1,128}"], ROW + ROW // 2 + INDEX),
    (["ROOT %r = f32[8,128]{1,0} dynamic-update-slice(%p, %u, %i, %i)"], 2 * ROW + INDEX),
    (["%d = f32[8,128]{1,0} dynamic-update-slice(%p, %u, %i, %i)", "ROOT %r = f32[1024]{0} bitcast(%d)"],
     2 * ROW + INDEX),
    (["%d = f32[8,128]{1,0} dynamic-update-slice(%p, %u, %i, %i)", "ROOT %r = f32[8,128]{1,0} negate(%d)"],
     WHOLE - ROW + ROW + INDEX + WHOLE),
    (["%b = f32[8,128]{1,0} broadcast(%i), dimensions={}", "ROOT %r = f32[8,128]{1,0} negate(%b)"], WHOLE + INDEX),
    (["%z = f32[] constant(0)", "ROOT %r = f32[8]{0} reduce(%p, %z), dimensions={1}, to_apply=%f"], WHOLE + 32),
    (["%a = f32[8,128]{1,0} negate(%p)", "%b = f32[1,128]{1,0} negate(%u)",
      "ROOT %r = (f32[8,128]{1,0}, f32[1,128]{1,0}) tuple(%a, %b)"], 2 * WHOLE + 2 * ROW),
    (["%n = f32[8,128]{1,0} negate(%p)", "ROOT %r = f32[1,128]{1,0} negate(%u)"], 2 * ROW),
], ids=["whole", "slice", "slice after a convert", "update in place", "update after a bitcast", "update that is read",
        "broadcast", "reduce", "two results", "dead code"])
def test_bytes_of_a_fusion(lines: list[str], moved: int) -> None:
    assert fused(*lines) == moved


def entry(*lines: str):
    """(computation, its last instruction) of a module of these lines."""
    computation = parse_hlo("\n".join(["HloModule m", "ENTRY %e (x: f32[]) -> f32[] {", *(f"  {x}" for x in lines),
                                       "}"])).computations["e"]
    return computation, list(computation.instructions.values())[-1]


GEMM = '''backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],\
"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}%s}}'''
PRECISE = ',"precision_config":{"operand_precision":["HIGHEST","HIGHEST"],"algorithm":"ALG_UNSET"}'


@pytest.mark.parametrize(("lines", "work"), [
    (["%a = f32[4,8,16]{2,1,0} parameter(0)", "%b = f32[4,16,32]{2,1,0} parameter(1)",
      "%r = f32[4,8,32]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
      "rhs_contracting_dims={1}"], {"tf32": 2.0 * 4 * 8 * 16 * 32}),
    (["%a = f32[8,16]{1,0} parameter(0)", "%b = f32[16,32]{1,0} parameter(1)",
      "%r = f32[8,32]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "operand_precision={highest,highest}"], {"f32": 2.0 * 8 * 16 * 32}),
    (["%a = f32[8,16]{1,0} parameter(0)", "%b = f32[16,32]{1,0} parameter(1)",
      "%r = f32[8,32]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "algorithm=dot_bf16_bf16_f32_x3"], {"bf16": 3 * 2.0 * 8 * 16 * 32}),
    (["%a = bf16[4,8,16]{2,1,0} parameter(0)", "%b = bf16[4,16,32]{2,1,0} parameter(1)",
      '%r = (bf16[4,8,32]{2,1,0}, s8[64]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", ' + GEMM % ""],
     {"bf16": 2.0 * 4 * 8 * 16 * 32}),
    (["%a = f32[4,8,16]{2,1,0} parameter(0)", "%b = f32[4,16,32]{2,1,0} parameter(1)",
      '%r = (f32[4,8,32]{2,1,0}, s8[64]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", '
      + GEMM % PRECISE],
     {"f32": 2.0 * 4 * 8 * 16 * 32}),
    (["%a = bf16[2,9,9,3]{3,2,1,0} parameter(0)", "%b = bf16[3,3,3,5]{3,2,1,0} parameter(1)",
      "%r = bf16[2,7,7,5]{3,2,1,0} convolution(%a, %b), window={size=3x3}, dim_labels=b01f_01io->b01f"],
     {"bf16": 2.0 * 2 * 7 * 7 * 5 * 27}),
    (["%a = bf16[2,9,9,3]{3,2,1,0} parameter(0)", "%g = bf16[2,7,7,5]{3,2,1,0} parameter(1)",
      "%r = (bf16[3,3,3,5]{3,2,1,0}, u8[0]{0}) custom-call(%a, %g), window={size=3x3}, dim_labels=b01f_01io->b01f, "
      'custom_call_target="__cudnn$convBackwardFilter"'], {"bf16": 2.0 * 2 * 7 * 7 * 5 * 27}),
    (["%g = bf16[2,7,7,5]{3,2,1,0} parameter(0)", "%b = bf16[3,3,3,5]{3,2,1,0} parameter(1)",
      "%r = (bf16[2,9,9,3]{3,2,1,0}, u8[0]{0}) custom-call(%g, %b), window={size=3x3}, dim_labels=b01f_01io->b01f, "
      'custom_call_target="__cudnn$convBackwardInput"'], {"bf16": 2.0 * 2 * 7 * 7 * 5 * 27}),
    (["%a = f32[8]{0} parameter(0)", "%r = f32[8]{0} negate(%a)"], {}),
], ids=["batched dot", "precise dot", "three products for one", "cuBLAS", "precise cuBLAS", "convolution",
        "filter gradient", "input gradient", "none"])
def test_flops(lines: list[str], work: dict[str, float]) -> None:
    assert {each.dtype: each.flops for each in instruction_products(*entry(*lines))} == work


def test_products_in_nested_fusions_count() -> None:
    module = parse_hlo("""HloModule m
%inner (a: bf16[8,16], b: bf16[16,32]) -> bf16[8,32] {
  %a = bf16[8,16]{1,0} parameter(0)
  %b = bf16[16,32]{1,0} parameter(1)
  ROOT %d = bf16[8,32]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY %outer (c: bf16[8,16], e: bf16[16,32]) -> bf16[8,32] {
  %c = bf16[8,16]{1,0} parameter(0)
  %e = bf16[16,32]{1,0} parameter(1)
  ROOT %f = bf16[8,32]{1,0} fusion(%c, %e), kind=kCustom, calls=%inner
}
""")
    assert fusion_products(module, module.computations["outer"]) == [Product("bf16", 2.0 * 8 * 16 * 32)]
    assert fusion_bytes(module.computations["outer"]) == 2 * (8 * 16 + 16 * 32 + 8 * 32)


def test_a_kernel_takes_its_bytes_or_its_flops_and_a_launch() -> None:
    cluster, launch = topology("h200"), timeline_constants()["kernel_launch_s"]
    small = entry("%a = f32[1024]{0} parameter(0)", "%r = f32[1024]{0} negate(%a)")
    assert instruction_bytes(*small) == 8192
    module = parse_hlo("HloModule m\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(0)\n}")
    times = KernelTimes(module, cluster, {"r": 3.0, "other": 1.0})
    assert KernelTimes(module, cluster).seconds(*small) == pytest.approx(
        launch + 8192 / (4.8e12 * compute_constants()["memory_efficiency"]))
    assert times.seconds(*small) == 3.0 and times.unused == ("other",)
    large = entry("%a = f8e4m3fn[8192,8192]{1,0} parameter(0)",
                  "%r = bf16[8192,8192]{1,0} dot(%a, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    assert KernelTimes(module, cluster).seconds(*large) == pytest.approx(
        launch + 2 * 8192 ** 3 / (1978.9e12 * compute_constants()["matmul_efficiency"]["hopper"]))
    unknown = entry("%a = f32[8]{0} parameter(0)", '%r = f32[8]{0} custom-call(%a), custom_call_target="mine"')
    assert KernelTimes(module, cluster).seconds(*unknown) is None


@pytest.mark.parametrize(("content", "name", "found"), [
    (b'fusion.1 = 2e-6\n"gemm.2" = 1\n', "t.toml", {"fusion.1": 2e-6, "gemm.2": 1.0}),
    (b'{"fusion.1": 2e-6}', "t.json", {"fusion.1": 2e-6}),
    (b"kernel,seconds\n# measured\nfusion.1,2e-6\n\n", "t.csv", {"fusion.1": 2e-6}),
])
def test_measured_times_are_read(content: bytes, name: str, found: dict[str, float]) -> None:
    assert read_kernel_times(content, name) == found


@pytest.mark.parametrize(("content", "name", "says"), [
    (b"a = -1", "t.toml", "times are seconds"), (b"a = true", "t.toml", "times are seconds"),
    (b'{"a": "fast"}', "t.json", "times are seconds"), (b"[1]", "t.json", "not an object"),
    (b"a,1,2\n", "t.csv", "t.csv:1: does not have two columns"),
    (b"\xff", "t.toml", "cannot be read"), (b"a = nan", "t.toml", "times"),
])
def test_damaged_measured_times_are_told_in_one_line(content: bytes, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        read_kernel_times(content, name)
    assert "\n" not in str(error.value)


def kernel_seconds(*lines: str) -> float:
    """Of the last line, an instruction outside of fusions."""
    empty = parse_hlo("HloModule m\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(0)\n}")
    found = KernelTimes(empty, topology("h200")).seconds(*entry(*lines))
    assert found is not None
    return found


@pytest.mark.parametrize("element", ["pred", "bf16", "f32"])
def test_a_fill_takes_a_thread_an_element_however_narrow(element: str) -> None:
    """A fill of bf16[12,32,1024,4096] took 1896 us on an H200, one of pred[32,16,1024,1024] 634 us."""
    rates = KernelRates(topology("h200"))
    found = kernel_seconds(f"%z = {element}[] constant(0)", f"%r = {element}[32,16,1024,1024]{{3,2,1,0}} "
                           "broadcast(%z), dimensions={}")
    assert found == pytest.approx(rates.launch_s + 2**29 / rates.elements_per_s) == pytest.approx(634e-6, rel=0.01)


def test_of_an_update_in_place_the_elements_of_the_update_count() -> None:
    lines = ("%a = bf16[1024,65536]{1,0} parameter(0)", "%u = bf16[{},65536]{{1,0}} parameter(1)",
             "%i = s32[] parameter(2)", "%r = bf16[1024,65536]{1,0} dynamic-update-slice(%a, %u, %i, %i)")
    few, all_rows = (kernel_seconds(lines[0], lines[1].format(rows), *lines[2:]) for rows in (1, 1024))
    assert few < 3e-6 and all_rows == pytest.approx(1e-6 + 2**26 / 0.85e12, rel=0.01)


@pytest.mark.parametrize(("element", "rate"), [("bf16", 0.128e12), ("f32", 4.8e12 * 0.9 / 12)])
def test_a_scatter_adds_elements_of_16_bits_slowly(element: str, rate: float) -> None:
    """Rows of 8192 bf16 numbers, 8192 of them, took 516 us on an H200."""
    found = kernel_seconds(f"%a = {element}[32768,8192]{{1,0}} parameter(0)", "%i = s32[8192,1]{1,0} parameter(1)",
                           f"%u = {element}[8192,8192]{{1,0}} parameter(2)",
                           f"%r = {element}[32768,8192]{{1,0}} scatter(%a, %i, %u), update_window_dims={{1}}, "
                           "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1")
    assert found == pytest.approx(1e-6 + 2**26 / rate, rel=0.02)


def test_a_product_writes_its_elements_in_tiles() -> None:
    rates = KernelRates(topology("h200"))
    found = kernel_seconds("%a = bf16[65536,16]{1,0} parameter(0)", "%b = bf16[16,65536]{1,0} parameter(1)",
                           "%r = bf16[65536,65536]{1,0} dot(%a, %b), lhs_contracting_dims={1}, "
                           "rhs_contracting_dims={0}")
    assert found == pytest.approx(2 * 2**32 / rates.memory_bytes_per_s, rel=0.01)
    assert found < 2**32 / rates.elements_per_s

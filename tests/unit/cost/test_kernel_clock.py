"""The model's time of kernels of a module that is not compiled yet: rates, what fuses, what a kernel reads."""

from __future__ import annotations

import pytest

from hlorewrite.cost import topology
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.cost.kernels.rates import KernelRates
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

SQUARE = "tensor<8192x8192x{}>"
ROWS, COLUMN, SCALAR = "tensor<4096x1024xf32>", "tensor<4096xf32>", "tensor<f32>"
BYTES = 4096 * 1024 * 4
CLUSTER = topology("h200")
RATES = KernelRates(CLUSTER)
SUM = (f"stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{{}}] : ({ROWS}, {SCALAR}) -> "
       "{}")


def seconds(element: str, precision: str = "", cluster: str = "h200") -> float:
    """Of one product."""
    t = SQUARE.format(element)
    view = View(parse(f"func.func @f(%a: {t}) -> {t} {{ %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]"
                      f"{precision} : ({t}, {t}) -> {t} return %0 : {t} }}"))
    return KernelClock(view, topology(cluster)).seconds(view.ops("stablehlo.dot_general")[0])


@pytest.mark.parametrize(("precision", "peak"), [
    ("", "tf32"), (", precision = [DEFAULT, DEFAULT]", "tf32"), (", precision = [HIGHEST, HIGHEST]", "f32"),
    (", precision = [HIGH, DEFAULT]", "f32")])
def test_f32_is_multiplied_in_tf32_where_the_precision_allows(precision: str, peak: str) -> None:
    """As XLA:GPU does it, and as the timeline of the compiled step has it."""
    peaks = topology("h200").peak_flops
    assert seconds("f32", precision) == pytest.approx(seconds("bf16") * peaks["bf16"] / peaks[peak], rel=0.01)


def test_a_named_algorithm_multiplies_several_times_in_its_own_type() -> None:
    algorithm = (", algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, "
                 "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, "
                 "allow_imprecise_accumulation = false>")
    found = seconds("f32", ", precision = [DEFAULT, DEFAULT]" + algorithm)
    assert found == pytest.approx(3 * seconds("bf16"), rel=0.01)


def clock(lines: str, arguments: str = f"%x: {ROWS}", returned: str = f"%r : {ROWS}", rest: str = "") -> KernelClock:
    """The clock of a function of these lines."""
    names, types = returned.split(" : ")
    text = (f"func.func @f({arguments}) -> ({types}) {{\n%zero = stablehlo.constant dense<0.0> : {SCALAR}\n{lines}\n"
            f"return {names} : {types}\n}}\n{rest}")
    return KernelClock(View(parse(text)), CLUSTER)


def kernels(made: KernelClock, moved: list[float]) -> None:
    """Asserts that a function runs kernels which move so many bytes."""
    block = made.view.functions["f"].regions[0].blocks[0]
    found = sorted(made.seconds(op) for op in made.kernels(block))
    assert found == pytest.approx(sorted(RATES.seconds(each, ()) for each in moved), rel=1e-3)


def test_what_is_fused_is_computed_in_the_kernel_that_reads_it() -> None:
    kernels(clock(f"%a = stablehlo.exponential %x : {ROWS}\n%b = stablehlo.negate %a : {ROWS}\n"
                  f"%r = stablehlo.add %b, %a : {ROWS}"), [2 * BYTES])


def test_what_is_returned_is_written_and_read_once_by_kernels_side_by_side() -> None:
    kernels(clock(f"%a = stablehlo.exponential %x : {ROWS}\n%r = stablehlo.negate %x : {ROWS}",
                  returned=f"%a, %r : {ROWS}, {ROWS}"), [2 * BYTES, BYTES])


def test_a_reduction_ends_a_kernel() -> None:
    total = SUM.format(1, COLUMN).replace("%x", "%a")
    kernels(clock(f"%a = stablehlo.exponential %x : {ROWS}\n%r = {total}", returned=f"%r : {COLUMN}"),
            [BYTES + 4096 * 4 + 4])


@pytest.mark.parametrize(("dimension", "kept", "moved"), [
    (1, COLUMN, [2 * BYTES]), (0, "tensor<1024xf32>", [BYTES, 2 * BYTES])])
def test_a_normalisation_of_rows_is_one_kernel(dimension: int, kept: str, moved: list[float]) -> None:
    """Of columns it is two."""
    kernels(clock(f"%s = {SUM.format(dimension, kept)}\n"
                  f"%b = stablehlo.broadcast_in_dim %s, dims = [{1 - dimension}] : ({kept}) -> {ROWS}\n"
                  f"%r = stablehlo.divide %x, %b : {ROWS}"), moved)


def test_a_slice_and_a_gather_read_what_they_take() -> None:
    part = "tensor<64x1024xf32>"
    kernels(clock(f"%r = stablehlo.slice %x [0:64, 0:1024] : ({ROWS}) -> {part}", returned=f"%r : {part}"),
            [2 * 64 * 4096])
    kernels(clock(f"""%r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1024>}}> :
        ({ROWS}, tensor<64x1xi32>) -> {part}""", f"%x: {ROWS}, %i: tensor<64x1xi32>", f"%r : {part}"),
            [2 * 64 * 4096 + 64 * 4])


@pytest.mark.parametrize(("donated", "moved"), [(" {tf.aliasing_output = 0 : i32}", 2 * 4096 + 8),
                                                ("", 2 * 4096 + 8 + 2 * BYTES)])
def test_an_update_of_a_donated_buffer_is_in_place(donated: str, moved: float) -> None:
    """One that is still the caller's is copied first."""
    kernels(clock(f"%r = stablehlo.dynamic_update_slice %x, %u, %i, %i : ({ROWS}, tensor<1x1024xf32>, tensor<i32>, "
                  f"tensor<i32>) -> {ROWS}", f"%x: {ROWS}{donated}, %u: tensor<1x1024xf32>, %i: tensor<i32>"), [moved])


def test_a_product_converts_and_transposes_its_operands_itself() -> None:
    t, b, p = "tensor<1024x4096xf32>", "tensor<1024x4096xbf16>", "tensor<4096x4096xf32>"
    made = clock(f"%t = stablehlo.transpose %x, dims = [1, 0] : ({ROWS}) -> {t}\n"
                 f"%c = stablehlo.convert %t : ({t}) -> {b}\n"
                 f"%r = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : ({ROWS}, {b}) -> {p}",
                 returned=f"%r : {p}")
    assert [op.name for op in made.kernels(made.view.functions["f"].regions[0].blocks[0])] == ["stablehlo.dot_general"]


def test_a_function_that_fuses_is_part_of_its_caller() -> None:
    """One that holds a product is not, and counts as often as it is called."""
    inner = "func.func private @g(%y: {0}) -> {0} {{ %z = stablehlo.exponential %y : {0} {1} return %z : {0} }}"
    body = f"%a = func.call @g(%x) : ({ROWS}) -> {ROWS}\n%r = func.call @g(%a) : ({ROWS}) -> {ROWS}"
    kernels(clock(body, rest=inner.format(ROWS, "")), [2 * BYTES])
    dot = f"%w = stablehlo.dot_general %y, %y, contracting_dims = [1] x [1] : ({ROWS}, {ROWS}) -> tensor<4096x4096xf32>"
    made = clock(body, rest=inner.format(ROWS, dot))
    assert made.function_seconds("f") == pytest.approx(2 * made.function_seconds("g"))


@pytest.mark.parametrize(("bound", "turns"), [("dense<5>", 5), ("dense<0>", 0)])
def test_a_loop_counts_as_often_as_it_turns(bound: str, turns: int) -> None:
    made = clock(f"""%start = stablehlo.constant dense<0> : tensor<i32>
      %bound = stablehlo.constant {bound} : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %start, %c = %x) : tensor<i32>, {ROWS}
      cond {{
        %more = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
        %next = stablehlo.add %i, %one : tensor<i32>
        %d = stablehlo.negate %c : {ROWS}
        stablehlo.return %next, %d : tensor<i32>, {ROWS}
      }}""", returned=f"%r#1 : {ROWS}")
    turn = RATES.seconds(2 * BYTES, ()) + RATES.seconds(8, ())
    assert made.seconds(made.view.ops("stablehlo.while")[0]) == pytest.approx(turns * turn)


def test_time_is_linear_in_ops_that_many_kernels_share() -> None:
    """A chain of which every op is returned, and one that many kernels compute again."""
    count = 3000
    chain = "\n".join(f"%v{i} = stablehlo.negate %{f'v{i - 1}' if i else 'x'} : {ROWS}" for i in range(count))
    names = ", ".join(f"%v{i}" for i in range(count))
    made = clock(chain, returned=f"{names} : {', '.join([ROWS] * count)}")
    assert len(made.kernels(made.view.functions["f"].regions[0].blocks[0])) == count


def test_a_kernel_reads_one_result_of_a_barrier() -> None:
    """The other values that the barrier holds together are not read, as if it were not there."""
    count = 40
    arguments = ", ".join(f"%x{i}: {ROWS}" for i in range(count))
    values, types = ", ".join(f"%x{i}" for i in range(count)), ", ".join([ROWS] * count)
    made = clock(f"%b:{count} = stablehlo.optimization_barrier {values} : {types}\n"
                 f"%r = stablehlo.negate %b#3 : {ROWS}", arguments)
    kernels(made, [2 * BYTES])


NARROW = "tensor<32x16x1024x1024xbf16>"


def test_a_kernel_takes_a_thread_an_element_however_narrow() -> None:
    made = clock(f"%r = stablehlo.broadcast_in_dim %zero2, dims = [] : (tensor<bf16>) -> {NARROW}",
                 arguments="%zero2: tensor<bf16>", returned=f"%r : {NARROW}")
    found = made.block_seconds(made.view.functions["f"].regions[0].blocks[0])
    assert found == pytest.approx(RATES.launch_s + 2**29 / RATES.elements_per_s)


def test_kernels_side_by_side_write_with_the_same_threads() -> None:
    """One kernel with two results of bf16[32,16,1024,1024] took as long on an H200 as one with a single one."""
    made = clock(f"%a = stablehlo.negate %y : {NARROW}\n%r = stablehlo.abs %y : {NARROW}",
                 arguments=f"%y: {NARROW}", returned=f"%a, %r : {NARROW}, {NARROW}")
    first, second = sorted((made.seconds(op) for op in made.kernels(made.view.functions["f"].regions[0].blocks[0])),
                           reverse=True)
    assert first == pytest.approx(RATES.launch_s + 2**29 / RATES.elements_per_s)
    assert second == pytest.approx(RATES.seconds(2**30, ()))

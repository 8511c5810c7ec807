"""Results that the host makes: which are taken out of a fragment, what stays, and buffers of its own for each step."""

from __future__ import annotations

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from pipeline_cases import reference, relative_errors, two_stages, values

import hlorewrite
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.pipelines.actions.order import Copy
from hlorewrite.pipelines.mpmd.program import FragmentCall
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.runtime.fragments import Fragments, PreparedFragment
from hlorewrite.pipelines.runtime.host_splats import FilledCall, take_filled

T, U = "tensor<4x2xf32>", "tensor<4xf32>"
ZEROS = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> {T}"""


def fragment(body: str, returned: str, types: str, argument: str = U) -> Module:
    listed = []
    for each in types.split(", "):
        cuts = ", ".join(["{}"] * len(re.findall("[0-9]x", each)))
        listed.append(f"{each} {{sdy.sharding = #sdy.sharding<@m, [{cuts}]>}}")
    rows = ", ".join(listed)
    return parse(f"""sdy.mesh @m = <["d"=1]>
      func.func public @main(%x: {argument}) -> ({rows}) {{
        {body}
        return {returned} : {types} }}""")


def main_of(module: Module) -> str:
    assert not module.verify()
    return str(View(module).functions["main"])


def test_what_is_filled_with_one_number_is_taken_and_the_rest_stays():
    module = fragment(f"""{ZEROS}
      %one = stablehlo.constant dense<1.0> : {U}
      %flat = stablehlo.reshape %zeros : ({T}) -> tensor<8xf32>
      %y = stablehlo.tanh %x : {U}""", "%zeros, %y, %one, %flat", f"{T}, {U}, {U}, tensor<8xf32>")
    assert take_filled(module) == {0: 0.0, 2: 1.0, 3: 0.0}
    text = main_of(module)
    assert "constant" not in text and "broadcast" not in text
    assert text.count("return %0 : tensor<4xf32>") == 1
    assert str(View(module).functions["main"].attributes["res_attrs"]).count("#sdy.sharding") == 1


def test_a_constant_that_is_read_elsewhere_stays_too():
    module = fragment(f"""%one = stablehlo.constant dense<1.0> : {U}
      %y = stablehlo.add %x, %one : {U}""", "%one, %y, %one", f"{U}, {U}, {U}")
    assert take_filled(module) == {0: 1.0, 2: 1.0}
    assert main_of(module).count("stablehlo.constant") == 1


@pytest.mark.parametrize(("body", "type_"), [
    ("%r = stablehlo.tanh %x : T", U),
    ("%r = stablehlo.constant dense<[1.0, 2.0, 1.0, 1.0]> : T", U),  # not one number
    ("%r = stablehlo.constant dense<0x7FC00001> : T", U),  # a NaN has bits that a number does not keep
    ("%c = stablehlo.constant dense<0.1> : tensor<4xf32>\n %r = stablehlo.convert %c : (tensor<4xf32>) -> T",
     "tensor<4xbf16>"),  # rounds
    ("%r = stablehlo.constant dense<1.0> : T", "tensor<4xf8E4M3FN>"),
    ("%r = stablehlo.constant dense<1> : T", "tensor<4xi4>"),  # two in a byte
    ("%r = stablehlo.constant dense<(1.0,0.0)> : T", "tensor<4xcomplex<f32>>"),
    ("%r = stablehlo.constant dense<1.0> : T", "tensor<4xf64>"),  # JAX would make 32 bits of it
    ("%c = stablehlo.constant dense<0.0> : T\n %r = stablehlo.pad %c, %p, low = [0], high = [0], interior = [0] : "
     "(T, tensor<f32>) -> T", U),
])
def test_what_is_not_taken(body: str, type_: str):
    pad = "%p = stablehlo.constant dense<1.0> : tensor<f32>\n" if "%p" in body else ""
    module = fragment(pad + body.replace("T", type_), "%r", type_)
    before = module.text()
    assert take_filled(module) == {}
    assert module.text() == before


def test_an_argument_is_not_taken():
    assert take_filled(fragment("", "%x", U)) == {}


def test_wide_numbers_are_taken_where_jax_keeps_them():
    module = fragment("%r = stablehlo.constant dense<1.0> : tensor<4xf64>", "%r", "tensor<4xf64>")
    with jax.enable_x64(True):
        assert take_filled(module) == {0: 1.0}


def test_in_a_manual_computation():
    row = '{sdy.sharding = #sdy.sharding<@m, [{"d"}]>}'
    module = parse(f"""sdy.mesh @m = <["d"=2]>
      func.func public @main(%x: {U} {row}) -> ({U} {row}, {U} {row}) {{
        %m:2 = sdy.manual_computation(%x) in_shardings=[<@m, [{{"d"}}]>]
          out_shardings=[<@m, [{{"d"}}]>, <@m, [{{"d"}}]>] manual_axes={{"d"}} (%l: tensor<2xf32>) {{
            %two = stablehlo.constant dense<2.0> : tensor<2xf32>
            %y = stablehlo.tanh %l : tensor<2xf32>
            sdy.return %two, %y : tensor<2xf32>, tensor<2xf32> }} : ({U}) -> ({U}, {U})
        return %m#0, %m#1 : {U}, {U} }}""")
    assert take_filled(module) == {0: 2.0}
    text = main_of(module)
    assert "constant" not in text and text.count("sdy.manual_computation") == 1


@pytest.mark.parametrize(("number", "dtype"), [
    (0.0, np.float32), (-0.0, np.float32), (0.1, ml_dtypes.bfloat16), (255, np.uint8), (-3, np.int32), (True, np.bool_),
    (float("inf"), np.float16)])
def test_the_host_makes_what_a_program_makes(number: float, dtype: np.dtype):
    mesh = Mesh(np.array(jax.devices()[:2]), ("d",))
    sharding = NamedSharding(mesh, PartitionSpec("d"))
    made, = FilledCall(None, {0: ((4, 2), np.dtype(dtype), sharding, number)})()
    wanted = jax.jit(lambda: jnp.full((4, 2), number, dtype), out_shardings=sharding)()
    assert made.sharding == sharding and made.dtype == wanted.dtype and made.committed
    assert np.asarray(made).tobytes() == np.asarray(wanted).tobytes()


def test_results_stand_in_their_places_and_a_token_after_them():
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("d",)), PartitionSpec())
    filled = {place: ((2,), np.dtype(np.float32), sharding, place) for place in (0, 2)}
    call = FilledCall(lambda x: [x, "token"], filled)
    first, second, third, token = call("given")
    assert (first.tolist(), second, third.tolist(), token) == ([0, 0], "given", [2, 2], "token")


def test_each_call_makes_buffers_that_may_be_written_over():
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("d",)), PartitionSpec())
    call = FilledCall(None, {0: ((1 << 16,), np.dtype(np.float32), sharding, 0)})
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        made, = call()
        assert not np.asarray(made).any()
        assert np.asarray(add(made)).all()


def _prepared(body: str, platform: str = "cpu") -> PreparedFragment:
    driver = PipelineDriver(two_stages())
    mesh = next(iter(driver.program.meshes))
    row = f'{{sdy.sharding = #sdy.sharding<@{mesh}, [{{}}]>}}'
    module = parse(f"""sdy.mesh @{mesh} = <["d"=1]>
      func.func private @f() -> ({U} {row}) {{ {body}
        %r = stablehlo.constant dense<0.0> : {U}
        return %r : {U} }}""")
    kind = next(each for each in driver.program.types)
    fragments = Fragments(module, SimpleNamespace(platform=platform, of_mesh=lambda _: jax.devices()[:1]), [kind])  # type: ignore[arg-type]
    return fragments._prepared(View(module), FragmentCall("f", "before", 0, mesh, (), (0,), ""), frozenset())


def test_a_fragment_without_other_results_is_not_compiled_unless_it_has_effects():
    effect = 'stablehlo.custom_call @print() {has_side_effect = true} : () -> ()'
    assert _prepared("").key is None
    assert _prepared(effect).key is not None
    token = "%t = stablehlo.create_token : !stablehlo.token"
    assert _prepared(token).key is not None


def test_on_gpus_everything_is_compiled():
    prepared = _prepared("", "gpu")
    assert prepared.key is not None and not prepared.filled and prepared.results == (0,)


def test_a_program_whose_sums_begin_as_zeros():
    driver = PipelineDriver(two_stages())
    assert any(isinstance(each.function, FilledCall) for each in driver.instructions)
    given = values()
    for _ in range(2):
        assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < 1e-5


def test_sums_that_begin_as_one_value_of_zeros_are_made_instead_of_copied():
    def loss(p, x):
        return jnp.mean((hlorewrite.stage(x @ p[0] @ p[1], 1) @ p[2] @ p[3]) ** 2)

    def step(p, x):
        value, grads = hlorewrite.mean_over_microbatches(lambda r: jax.value_and_grad(loss)(p, r), x, 2)
        return [a - 0.1 * b for a, b in zip(p, grads, strict=True)], value

    given = [0.5 * jnp.eye(4)] * 4, jnp.ones((4, 4))
    made = hlorewrite.pipeline(step, meshes=[(1,), (1,)])
    driver = made.lower(*given).compile().driver
    copies = [each.function for each in driver.instructions if isinstance(each.action.step, Copy)]
    assert len(copies) == 2  # the last sum of each mesh takes the zeros themselves
    for copy in copies:
        (one,), (other,) = copy(None), copy(None)  # reads nothing
        assert one is not other and not np.asarray(one).any()
    for got, want in zip(jax.tree.leaves(made(*given)), jax.tree.leaves(jax.jit(step)(*given)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)

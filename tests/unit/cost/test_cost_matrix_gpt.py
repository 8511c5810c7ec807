"""The matrix of a (p,t,d) = (4,2,4) GPT: formula, program of four meshes, and compiled fragments agree exactly."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from dataclasses import dataclass, field

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.analysis.groups import list_groups
from hlorewrite.cost import Options, Parallelism, model
from hlorewrite.cost.report.collectives import collectives_of_hlo
from hlorewrite.cost.report.report import build_report
from hlorewrite.cost.traffic import CollectiveTraffic, add_traffic, iteration_transfers, traffic_matrix
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.pipelines.adapter.collectives import collectives_of_program

PP, TP, DP, M = 4, 2, 4, 2
SHAPE = model("gpt", layers=8, hidden=16, heads=4, seq=8, vocab=32)
SIZES = Parallelism(PP, TP, DP, global_batch=M * DP)
OPTIONS = Options(dtype="f32", vocabulary_terms=True)
MESH = AbstractMesh((DP, TP), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
LOCAL = P(("data", "tensor"))  # a residual: every device's own, laid side by side


@jax.custom_vjp
def enter(x):
    """Identity forward, all-reduce backward."""
    return x


@jax.custom_vjp
def leave(x):
    """All-reduce forward, identity backward."""
    return lax.psum(x, "tensor")


enter.defvjp(lambda x: (x, None), lambda _, g: (lax.psum(g, "tensor"),))
leave.defvjp(lambda x: (lax.psum(x, "tensor"), None), lambda _, g: (g,))


def norm(x, scale, shift):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale + shift


def block(x, w):
    y = enter(norm(x, w["norm1"], w["shift1"]))
    q, k, v = jnp.moveaxis(jnp.einsum("bsh,hcnd->bscnd", y, w["qkv"]) + w["qkv_bias"], 2, 0)
    scores = jnp.einsum("bsnd,btnd->bnst", q, k) / 2.0
    mixed = jnp.einsum("bnst,btnd->bsnd", jax.nn.softmax(scores, -1), v)
    x = x + leave(jnp.einsum("bsnd,ndh->bsh", mixed, w["out"])) + w["out_bias"]
    y = enter(norm(x, w["norm2"], w["shift2"]))
    return x + leave(jax.nn.gelu(y @ w["up"] + w["up_bias"]) @ w["down"]) + w["down_bias"]


def layer_shapes() -> dict[str, tuple[tuple[int, ...], P]]:
    h, n, d = SHAPE.hidden, SHAPE.heads, SHAPE.hidden // SHAPE.heads
    return {"norm1": ((h,), P()), "shift1": ((h,), P()), "norm2": ((h,), P()), "shift2": ((h,), P()),
            "qkv": ((h, 3, n, d), P(None, None, "tensor")), "qkv_bias": ((3, n, d), P(None, "tensor")),
            "out": ((n, d, h), P("tensor")), "out_bias": ((h,), P()), "up": ((h, 4 * h), P(None, "tensor")),
            "up_bias": ((4 * h,), P("tensor")), "down": ((4 * h, h), P("tensor")), "down_bias": ((h,), P())}


def stage_shapes(stage: int) -> dict[str, tuple[tuple[int, ...], P]]:
    shapes = {f"{i}.{name}": value for i in range(SHAPE.layers // PP) for name, value in layer_shapes().items()}
    if stage in (0, PP - 1):
        shapes["embed"] = ((SHAPE.vocab, SHAPE.hidden), P("tensor"))
    if stage == 0:
        shapes["position"] = ((SHAPE.seq, SHAPE.hidden), P())
    return shapes


def own_rows(tokens):
    rows = SHAPE.vocab // TP
    place = tokens - lax.axis_index("tensor") * rows
    return jnp.clip(place, 0, rows - 1), (place >= 0) & (place < rows)


def stage_forward(stage: int, w: dict, x, tokens):
    """What a stage computes: embedding, layers, loss, as its place has it."""
    if stage == 0:
        row, mine = own_rows(tokens)
        x = leave(w["embed"][row] * mine[..., None]) + w["position"]
    for i in range(SHAPE.layers // PP):
        x = block(x, {name: w[f"{i}.{name}"] for name in layer_shapes()})
    if stage < PP - 1:
        return x
    logits = enter(x) @ w["embed"].T
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, -1)), "tensor")
    total = leave(jnp.sum(jnp.exp(logits - top[..., None]), -1))
    row, mine = own_rows(tokens)
    label = leave(jnp.take_along_axis(logits, row[..., None], -1)[..., 0] * mine)
    return jnp.mean(jnp.log(total) + top - label)


@dataclass
class Fragment:
    """A jitted piece of the program on one stage's mesh, and the types it was lowered for."""

    name: str
    stage: int
    lowered: jax.stages.Lowered
    calls: int = 1
    text: str = field(default="")


def lower(name: str, stage: int, body, in_specs, out_specs, args, calls: int = 1) -> Fragment:
    mapped = jax.shard_map(body, mesh=MESH, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    given = jax.tree.map(lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype,
                                                                sharding=NamedSharding(MESH, spec)),
                         args, in_specs, is_leaf=lambda leaf: isinstance(leaf, P))
    return Fragment(name, stage, jax.jit(mapped).trace(*given).lower(lowering_platforms=("cpu",)), calls)


def stage_fragments(stage: int) -> list[Fragment]:
    """Forward, backward and update of one stage; residuals pass from the first to the second."""
    f32, shapes = jnp.float32, stage_shapes(stage)
    weights = {k: jax.ShapeDtypeStruct(shape, f32) for k, (shape, _) in shapes.items()}
    specs = {k: spec for k, (_, spec) in shapes.items()}
    x = jax.ShapeDtypeStruct((DP, SHAPE.seq, SHAPE.hidden), f32)
    tokens = jax.ShapeDtypeStruct((DP, SHAPE.seq), jnp.int32)
    known: dict = {}

    def forward(w, x, tokens):
        out, pull = jax.vjp(lambda w, x: stage_forward(stage, w, x, tokens), w, x)
        leaves, known["tree"] = jax.tree.flatten(pull)
        known["shapes"] = [leaf.shape for leaf in leaves]
        return out, [jnp.reshape(leaf, (1, -1)) for leaf in leaves]

    def backward(residuals, g):
        leaves = [jnp.reshape(leaf, shape) for leaf, shape in zip(residuals, known["shapes"], strict=True)]
        return jax.tree.unflatten(known["tree"], leaves)(g)

    def update(grads):
        return jax.tree.map(lambda leaf: lax.psum(leaf, "data"), grads)

    out_spec = P("data") if stage < PP - 1 else P()
    made = lower(f"forward{stage}", stage, forward, (specs, P("data"), P("data")), (out_spec, LOCAL),
                 (weights, x, tokens), M)
    residuals = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in made.lowered.out_info[1]]
    g = x if stage < PP - 1 else jax.ShapeDtypeStruct((), f32)
    back = lower(f"backward{stage}", stage, backward, ([LOCAL] * len(residuals), out_spec), (specs, P("data")),
                 (residuals, g), M)
    return [made, back, lower(f"update{stage}", stage, update, (specs,), specs, (weights,))]


@pytest.fixture(scope="module")
def fragments() -> list[Fragment]:
    return [each for stage in range(PP) for each in stage_fragments(stage)]


def transfers() -> list[tuple[int, int, str, str, int]]:
    """(source stage, target stage, tensor type, sharding, times)."""
    activation = (f"tensor<{DP}x{SHAPE.seq}x{SHAPE.hidden}xf32>", '[{"data"}, {}, {}]')
    table = (f"tensor<{SHAPE.vocab}x{SHAPE.hidden}xf32>", '[{"tensor"}, {}]')
    pairs = [(s, s + 1) for s in range(PP - 1)]
    sent = [(a, b, *activation, M) for s, t in pairs for a, b in ((s, t), (t, s))]
    return [*sent, (0, PP - 1, *table, 1), (PP - 1, 0, *table, 1)]


def program_text(fragments: list[Fragment]) -> str:
    """A program of four meshes that calls each fragment and makes each transfer as often as an iteration does."""
    functions, lines, arguments = [], [], []
    for each in fragments:
        module = parse(each.lowered.as_text())
        inline_calls(Editor(View(module)))
        list_groups(Editor(View(module)))
        body = module.text()
        start = body.index("func.func public @main")
        first, rest = body[start:body.rindex("}")].replace("public @main", f"@{each.name}").split("\n", 1)
        functions.append(first.removesuffix("{") + "attributes {mesh_shape = #sdy.mesh"
                         f'<["data"={DP}, "tensor"={TP}]>}} {{\n{rest}')
        signature = str(View(module).functions["main"].attributes["function_type"]).split("->")
        types, results = (re.findall(r"tensor<[^>]*>", side) for side in signature)
        inputs = [f'!mpmd.mesh_tensor<"m{each.stage}", {kind}>' for kind in types]
        names = [f"%a{len(arguments) + i}" for i in range(len(inputs))]
        arguments += [f"{name}: {kind}" for name, kind in zip(names, inputs, strict=True)]
        outputs = ", ".join(f'!mpmd.mesh_tensor<"m{each.stage}", {kind}>' for kind in results)
        for call in range(each.calls):
            count = f":{len(results)}" if len(results) > 1 else ""
            lines.append(f'%{each.name}_{call}{count} = mpmd.fragment_call<mesh="m{each.stage}", '
                         f'origin=["{each.name}"]> @{each.name}({", ".join(names)}) : ({", ".join(inputs)}) -> '
                         + (f"({outputs})" if len(results) > 1 else outputs))
    for number, (source, target, kind, sharding, times) in enumerate(transfers()):
        left, right = (f'!mpmd.mesh_tensor<"m{s}", {kind}, sharding=<@mesh, {sharding}>>' for s in (source, target))
        arguments.append(f"%t{number}: {left}")
        lines += [f"%x{number}_{i} = mpmd.transfer %t{number} : ({left}) -> {right}" for i in range(times)]
    mesh = f'<["data"={DP}, "tensor"={TP}]>'
    topology = ", ".join(f'<"m{stage}" : {mesh}>' for stage in range(PP))
    head = f"func.func public @main({', '.join(arguments)}) attributes {{topology = #mpmd.topology<{topology}>}} {{"
    return "\n".join(["module {", f"sdy.mesh @mesh = {mesh}", head, *lines, "return", "}", *functions, "}"])


def formula() -> np.ndarray:
    return traffic_matrix(iteration_transfers(SHAPE, SIZES, OPTIONS), PP * TP * DP)


def test_program_agrees_exactly(fragments: list[Fragment]) -> None:
    devices, collectives, remarks = collectives_of_program(parse(program_text(fragments)))
    report = build_report("gpt", "mpmd", devices, collectives, remarks=remarks)
    assert (devices, remarks) == (32, [])
    assert {axis for line in report.lines for axis in line.what.axes} == {"data", "tensor"}
    np.testing.assert_array_equal(report.matrix(), formula())


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                    reason="compiling for described GPUs needs the aot extra")
def test_compiled_fragments_agree_exactly(fragments: list[Fragment]) -> None:
    """XLA's optimised HLO of each fragment, at its stage's place, with the transfers between them."""
    total = np.zeros((PP * TP * DP,) * 2)
    for each in fragments:
        devices, collectives, remarks = collectives_of_hlo(compile_described(each.lowered.as_text()))
        assert (devices, remarks) == (TP * DP, [])
        start = each.stage * TP * DP
        for what in collectives:
            groups = tuple(tuple(start + gpu for gpu in group) for group in what.groups)
            add_traffic(total, CollectiveTraffic(what.kind, what.payload_bytes, groups, what.trips * each.calls))
    for source, target, kind, sharding, times in transfers():
        axis = DP if "data" in sharding else TP
        size = int(np.prod([int(n) for n in re.findall(r"\d+(?=x)", kind)])) * 4 // axis
        pairs = tuple((source * TP * DP + i, target * TP * DP + i) for i in range(TP * DP))
        add_traffic(total, CollectiveTraffic("collective-permute", size, pairs, times))
    np.testing.assert_array_equal(total, formula())


@functools.cache
def compile_described(text: str) -> str:
    """Optimised HLO for eight described devices; the middle stages share theirs."""
    from hlorewrite.jaxbridge.xla.compile_for import compile_for
    from hlorewrite.jaxbridge.xla.target import parse_target
    return compile_for(parse(text), parse_target("h200:1x8")).hlo

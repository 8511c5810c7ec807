"""Steps split into stages compute what they compute unsplit, and what lives where is as documented."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from pipeline_steps import batch, calls, check_same, mlp_loss, sent, sent_outside, split, train_step, weights

import hlorewrite
from hlorewrite.errors import HlorewriteError

FOUR = "(2),(2),(2),(2)"


@pytest.mark.parametrize("schedule, meshes", [("1f1b", FOUR), ("gpipe", FOUR), ("eager-1f1b", FOUR), ("zb-h1", FOUR),
                                              ("zb-h2", FOUR), ("interleaved-1f1b", "(2),(2)"),
                                              ("dualpipe-v", "(2),(2)")])
def test_every_schedule(schedule, meshes):
    program = check_same(train_step(mlp_loss), (weights(4), *batch()), meshes, schedule)
    assert program.stages == 4 and program.iterations == 4
    assert all(carry.is_sum for carry in program.carries)
    halves = {"I", "W"} if schedule in ("zb-h1", "zb-h2", "dualpipe-v") else {"B"}
    assert {call.task for call in calls(program)} == {"before", "F", "update"} | halves


def test_two_stages_send_one_activation_and_one_cotangent():
    program = check_same(train_step(mlp_loss), (weights(2), *batch()))
    assert sent(program) == [("m0", "m1", (4, 8)), ("m1", "m0", (4, 8))]
    assert sent_outside(program) == []
    assert [program.types[n].mesh for n in program.arguments] == ["m0", "m1", "m0", "m1"]
    assert program.donated == {0, 1}


def test_stages_of_one_mesh_send_nothing_to_each_other():
    program = check_same(train_step(mlp_loss), (weights(4), *batch()), "(2),(2)", "dualpipe-v")
    assert program.mesh_of_stage() == ("m0", "m1", "m1", "m0")
    assert [(a, b) for a, b, _ in sent(program)] == [("m0", "m1"), ("m1", "m0")] * 2


@pytest.mark.parametrize("locations", [True, False])
def test_the_last_stage_forward_is_told_from_its_backward(locations):
    program = check_same(train_step(mlp_loss), (weights(2), *batch()), locations=locations)
    last = next(call for call in calls(program, "F") if call.stage == 1)
    assert () in [program.types[n].shape for n in last.results]
    assert (8, 8) not in [program.types[n].shape for n in last.results]


def tied_loss(params, tokens):
    x = params["embed"][tokens[:, :-1]]
    for i, w in enumerate(params["layers"]):
        x = jnp.tanh(hlorewrite.stage(x, i) @ w)
    logits = x @ params["embed"].T
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1))


def tied(dtype=jnp.float32):
    params = {"embed": jax.random.normal(jax.random.key(7), (16, 8)) * 0.3, "layers": weights(3)}
    return jax.tree.map(lambda x: x.astype(dtype), params), jax.random.randint(jax.random.key(8), (4, 4, 7), 0, 16)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_tied_embeddings_get_one_accumulator_a_stage(dtype):
    def loss(params, tokens):
        return tied_loss(jax.tree.map(lambda p: p.astype(dtype), params), tokens).astype(jnp.float32)

    tolerance = 1e-5 if dtype == jnp.float32 else 1e-2  # each stage's part is summed in float32, not rounded first
    program = check_same(train_step(loss), tied(), "(2),(2),(2)", tolerance=tolerance)
    wide = [kind for kind in sent(program) if kind[2] == (16, 8)]
    assert wide == []
    assert sorted(kind for kind in sent_outside(program) if kind[2] == (16, 8)) == [("m0", "m2", (16, 8)),
                                                                                    ("m2", "m0", (16, 8))]
    assert sum(program.types[carry.first].shape == (16, 8) for carry in program.carries) == 2


def test_tied_embeddings_as_the_step_adds_them():
    program = check_same(train_step(tied_loss), tied(), "(2),(2),(2)", shared="every-micro-batch")
    assert ("m2", "m0", (16, 8)) in sent(program)
    assert sum(program.types[carry.first].shape == (16, 8) for carry in program.carries) == 1


def test_auxiliary_losses_of_any_stage():
    def loss(params, x, y):
        extra = 0.0
        for i, w in enumerate(params):
            x = jnp.tanh(hlorewrite.stage(x, i) @ w)
            extra += 0.01 * jnp.sum(x ** 2)
        return jnp.mean((x - y) ** 2) + extra

    program = check_same(train_step(loss), (weights(3), *batch()), "(2),(2),(2)")
    assert all(kind[2] != () for kind in sent(program))  # each stage adds up its own, over the micro-batches
    assert sorted(kind for kind in sent_outside(program) if kind[2] == ()) == [("m0", "m2", ()), ("m1", "m2", ())]


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_recomputation_is_part_of_the_backward(prevent_cse):
    def layer(w, x):
        return jnp.sin(jnp.tanh(x @ w[0]) @ w[1])

    def loss(params, x, y):
        for i, w in enumerate(params):
            x = jax.checkpoint(layer, prevent_cse=prevent_cse)(w, hlorewrite.stage(x, i))
        return jnp.mean((x - y) ** 2)

    params = [weights(2), weights(2), weights(2)]
    program = check_same(train_step(loss), (params, *batch()), "(2),(2),(2)")
    if prevent_cse:
        middle = next(call for call in calls(program, "F") if call.stage == 1)
        assert len(middle.results) == 1  # what goes to stage 2; its input is kept for the backward


@pytest.mark.parametrize("schedule, meshes", [("1f1b", "(2),(2),(2)"), ("zb-h1", "(2),(2),(2)")])
def test_checkpoint_around_marks_recomputes_each_stage_from_what_it_was_sent(schedule, meshes):
    def loss(params, x, y):
        for i, w in enumerate(params):
            x = jnp.sin(jnp.tanh(hlorewrite.stage(x, i) @ w[0]) @ w[1])
        return jnp.mean((x - y) ** 2) * jnp.mean(x)

    params = [weights(2), weights(2), weights(2)]
    step = train_step(jax.checkpoint(loss))
    program = check_same(step, (params, *batch()), meshes, schedule)
    assert sent(program) == [("m0", "m1", (4, 8)), ("m1", "m2", (4, 8)), ("m2", "m1", (4, 8)), ("m1", "m0", (4, 8))]
    assert [len(call.results) for call in calls(program, "F")][:2] == [1, 1]
    text = split(step, (params, *batch()), meshes, schedule).text()
    backward = text.split("func.func private @" + ("backward_1" if schedule == "1f1b" else "input_gradient_1"))[1]
    assert backward.split("func.func")[0].count("stablehlo.tanh") == 1


def test_checkpoint_around_marks_and_around_layers():
    def loss(params, x, y):
        for i, w in enumerate(params):
            x, _ = lax.scan(jax.checkpoint(lambda h, v: (jnp.tanh(h @ v), None)), hlorewrite.stage(x, i), w)
        return jnp.mean((x - y) ** 2)

    params = [jnp.stack(weights(2)), jnp.stack(weights(3))]
    check_same(train_step(jax.checkpoint(loss)), (params, *batch()))
    check_same(train_step(jax.checkpoint(loss, policy=jax.checkpoint_policies.dots_saveable)), (params, *batch()))


def test_skip_connections_are_sent_directly_and_once():
    def loss(params, x, y):
        first = jnp.tanh(x @ params[0])
        x = jnp.tanh(hlorewrite.stage(first, 1) @ params[1])
        x = hlorewrite.stage(x, 2) + first
        return jnp.mean((jnp.tanh(x @ params[2]) * first - y) ** 2)

    program = check_same(train_step(loss), (weights(3), *batch()), "(2),(2),(2)")
    assert sent(program).count(("m0", "m2", (4, 8))) == 1
    assert len(set(sent(program))) == len(sent(program))


def test_stacked_losses_and_integer_results():
    def step(params, xs, ys):
        def body(total, part):
            loss, grads = jax.value_and_grad(mlp_loss)(params, *part)
            return (jax.tree.map(jnp.add, total[0], grads), total[1] + (loss > 0.5).astype(jnp.int32)), loss

        (grads, many), losses = lax.scan(body, (jax.tree.map(jnp.zeros_like, params), jnp.int32(0)), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads), losses, many

    program = check_same(step, (weights(2), *batch()), "(2),(2)", "gpipe")
    assert all(carry.is_sum for carry in program.carries)


def test_fori_loop_and_a_counter_that_starts_elsewhere():
    def step(params, xs, ys):
        def body(k, total):
            part = (lax.dynamic_index_in_dim(a, (k - 3) // 2, keepdims=False) for a in (xs, ys))
            return jax.tree.map(jnp.add, total, jax.grad(mlp_loss)(params, *part))

        grads = lax.while_loop(lambda s: s[0] < 11, lambda s: (s[0] + 2, body(s[0], s[1])),
                               (jnp.int32(3), jax.tree.map(jnp.zeros_like, params)))[1]
        return jax.tree.map(lambda p, g: p - g, params, grads)

    assert check_same(step, (weights(2), *batch())).iterations == 4


def test_mean_over_microbatches():
    def step(params, rows, targets):
        loss, grads = hlorewrite.mean_over_microbatches(
            lambda part: jax.value_and_grad(mlp_loss)(params, *part), (rows, targets), 4)
        return jax.tree.map(lambda p, g: p - g, params, grads), loss

    x, y = (each.reshape(16, 8) for each in batch())
    program = check_same(step, (weights(2), x, y), specs=[P(), P("data"), P("data")])
    assert program.types[calls(program, "F")[0].results[0]].spec[0] == ("data",)


def test_dropout_with_keys_of_each_micro_batch():
    def loss(params, key, x, y):
        for i, w in enumerate(params):
            x = jnp.tanh(hlorewrite.stage(x, i) @ w)
            x = x * jax.random.bernoulli(jax.random.fold_in(key, i), 0.8, x.shape) / 0.8
        return jnp.mean((x - y) ** 2)

    def step(params, xs, ys, seed):
        keys = jax.random.split(jax.random.wrap_key_data(seed), 4)
        return train_step(loss)(params, keys, xs, ys)

    program = check_same(step, (weights(2), *batch(), jax.random.key_data(jax.random.key(3))))
    assert {shape for _, _, shape in sent(program)} == {(4, 8)}


def test_a_random_key_that_is_carried():
    def step(params, xs, ys, seed):
        def body(carry, part):
            total, key = carry
            key, use = jax.random.split(key)
            noise = 0.1 * jax.random.normal(use, part[0].shape)
            grads = jax.grad(mlp_loss)(params, part[0] + noise, part[1])
            return (jax.tree.map(jnp.add, total, grads), key), None

        (grads, key), _ = lax.scan(body, (jax.tree.map(jnp.zeros_like, params), jax.random.wrap_key_data(seed)),
                                   (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads), jax.random.key_data(key)

    program = check_same(step, (weights(2), *batch(), jax.random.key_data(jax.random.key(3))))
    assert [carry.is_sum for carry in program.carries].count(False) == 1


def test_running_statistics_of_a_stage():
    def loss(params, stats, x, y):
        x = jnp.tanh(x @ params[0])
        x = hlorewrite.stage(x, 1)
        mean = jnp.mean(x, 0)
        x = jnp.tanh((x - lax.stop_gradient(mean)) @ params[1])
        return jnp.mean((x - y) ** 2), 0.9 * stats + 0.1 * mean

    def step(params, stats, xs, ys):
        def body(carry, part):
            total, stats = carry
            grads, stats = jax.grad(loss, has_aux=True)(params, stats, *part)
            return (jax.tree.map(jnp.add, total, grads), stats), None

        (grads, stats), _ = lax.scan(body, (jax.tree.map(jnp.zeros_like, params), stats), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads), stats

    program = check_same(step, (weights(2), jnp.zeros(8), *batch()), "(2),(2)", "gpipe")
    assert [carry.is_sum for carry in program.carries].count(False) == 1


@pytest.mark.parametrize("kept_first", [False, True])
def test_micro_batches_that_are_skipped_are_sums(kept_first):
    """``where(ok, a + x, a)``, with a micro-batch that is not finite, on every mesh."""
    def step(params, xs, ys):
        def body(total, part):
            value, grads = jax.value_and_grad(mlp_loss)(params, *part)
            ok = jnp.isfinite(value)

            def add(a, x):
                return jnp.where(~ok, a, a + x) if kept_first else jnp.where(ok, a + x, a)

            return jax.tree.map(add, total, grads), value

        grads, _ = lax.scan(body, jax.tree.map(jnp.zeros_like, params), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads)

    xs, ys = batch()
    program = check_same(step, (weights(3), xs.at[1].set(jnp.inf), ys), "(2),(2),(2)")
    assert all(carry.is_sum for carry in program.carries)
    assert np.isfinite(np.asarray(jax.jit(step)(weights(3), xs.at[1].set(jnp.inf), ys)[0])).all()


def test_a_skip_that_depends_on_the_sum_is_no_sum():
    """Its order matters, so the accumulator is carried from micro-batch to micro-batch."""
    def step(params, xs, ys):
        def body(total, part):
            grads = jax.grad(mlp_loss)(params, *part)
            return jax.tree.map(lambda a, x: jnp.where(jnp.sum(a) < 1.0, a + x, a), total, grads), None

        grads, _ = lax.scan(body, jax.tree.map(jnp.zeros_like, params), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads)

    program = check_same(step, (weights(2), *batch()), "(2),(2)")
    assert not any(carry.is_sum for carry in program.carries)


def test_a_count_of_tokens_divides_the_sum():
    def loss(params, x, y):
        keep = (y[:, 0] > 0).astype(jnp.float32)
        for i, w in enumerate(params):
            x = jnp.tanh(hlorewrite.stage(x, i) @ w)
        return jnp.sum(jnp.mean((x - y) ** 2, -1) * keep), jnp.sum(keep)

    def step(params, xs, ys):
        def body(total, part):
            (value, count), grads = jax.value_and_grad(loss, has_aux=True)(params, *part)
            return jax.tree.map(jnp.add, total, (value, count, grads)), None

        zeros = (jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        (value, count, grads), _ = lax.scan(body, zeros, (xs, ys))
        return jax.tree.map(lambda p, g: p - g / count, params, grads), value / count

    program = check_same(step, (weights(3), *batch()), "(2),(2),(2)")
    assert sorted(sent_outside(program)) == [("m2", "m0", ()), ("m2", "m1", ())]


def test_optax_adamw_with_the_global_norm_clipped():
    rate = optax.cosine_decay_schedule(1e-2, 10)
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(rate))

    def step(state, xs, ys):
        params, inner = state
        count = xs.shape[0]

        def body(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(mlp_loss)(params, *part)), None

        (loss, grads), _ = lax.scan(body, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)), (xs, ys))
        updates, inner = optimizer.update(jax.tree.map(lambda g: g / count, grads), inner, params)
        return (optax.apply_updates(params, updates), inner), loss / count

    params = weights(4)
    program = check_same(step, ((params, optimizer.init(params)), *batch()), FOUR)
    matrices = [n for n in program.arguments if program.types[n].shape == (8, 8)]
    assert [program.types[n].mesh for n in matrices] == ["m0", "m1", "m2", "m3"] * 3  # moments with their parameter
    crossing = sent_outside(program)
    assert all(shape == () for _, _, shape in crossing)
    assert [pair for pair in crossing if pair[1] == "m3"].count(("m1", "m3", ())) == 1  # a mesh's own sum of squares
    kinds = [program.types[n] for n in program.results]
    assert [type_.mesh for type_ in kinds if type_.shape == (8, 8)] == ["m0", "m1", "m2", "m3"] * 3


@pytest.mark.parametrize("leaves", [1, 3])
def test_a_global_norm_sends_one_number_a_mesh(leaves):
    def loss(params, x, y):
        return mlp_loss([sum(group) for group in params], x, y)

    def update(params, grads):
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        return jax.tree.map(lambda p, g: p - g / norm, params, grads)

    params = [[w / leaves for _ in range(leaves)] for w in weights(3)]
    program = check_same(train_step(loss, update), (params, *batch()), "(2),(2),(2)")
    assert sorted(sent_outside(program)) == [("m0", "m2", ()), ("m1", "m2", ()), ("m2", "m0", ()), ("m2", "m1", ())]


def test_scan_over_layers_and_custom_vjp():
    @jax.custom_vjp
    def act(x):
        return jnp.tanh(x)

    act.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: ((1 - jnp.tanh(x) ** 2) * g,))

    def loss(params, x, y):
        for i, w in enumerate(params):
            x, _ = lax.scan(jax.checkpoint(lambda h, v: (act(h @ v), None)), hlorewrite.stage(x, i), w)
        return jnp.mean((x - y) ** 2)

    params = [jnp.stack(weights(3)), jnp.stack(weights(2))]
    check_same(train_step(loss), (params, *batch()))
    check_same(train_step(loss), (params, *batch()), "(2),(2)", "zb-h1")


def test_a_gradient_inside_the_forward():
    def loss(params, x, y):
        x = x + jax.grad(lambda h: jnp.sum(jnp.tanh(h @ params[0]) ** 2))(x)
        x = hlorewrite.stage(jnp.tanh(x @ params[0]), 1)
        return jnp.mean((jnp.tanh(x @ params[1]) - y) ** 2)

    program = check_same(train_step(loss), (weights(2), *batch()))
    assert {call.task for call in calls(program) if call.stage == 0} == {"before", "F", "B", "update"}


def test_mixed_precision_and_pytree_marks():
    def loss(params, x, y):
        state = {"x": x.astype(jnp.bfloat16), "skip": None, "scale": jnp.float32(1)}
        for i, w in enumerate(params):
            state = hlorewrite.stage(state, i)
            state = state | {"x": jnp.tanh(state["x"] @ w.astype(jnp.bfloat16)), "scale": state["scale"] * 1.5}
        return jnp.mean((state["x"].astype(jnp.float32) * state["scale"] - y) ** 2)

    check_same(train_step(loss), (weights(3), *batch()), "(2),(2),(2)", tolerance=2e-2)  # fused, bfloat16 rounds later


def test_unequal_meshes_get_shardings_of_their_own():
    specs = [P(None, "tensor"), P(None, "data"), P(None, "data")]
    program = check_same(train_step(mlp_loss), (weights(4), *batch(rows=8)), "(8x1),(4x2),(4x2),(4x2)", sizes=(4, 2),
                         specs=specs)
    assert [dict(mesh.axes) for mesh in program.meshes.values()] == [{"data": 8, "tensor": 1}] + \
        [{"data": 4, "tensor": 2}] * 3
    kinds = [program.types[n] for n in program.arguments]
    assert [kind.spec for kind in kinds[:4]] == [((), ("tensor",))] * 4
    assert {kind.mesh for kind in kinds[4:]} == {"m0", "m3"}
    assert all(program.types[n].spec[0] == ("data",) for call in calls(program, "F") for n in call.results
               if len(program.types[n].shape) == 2)


def test_frozen_and_unused_arguments_keep_their_places():
    def step(params, frozen, unused, xs, ys):
        def loss(p, x, y):
            return mlp_loss([p[0] + frozen, p[1]], x, y)
        return (*train_step(loss)(params, xs, ys), frozen * 2, unused)

    program = check_same(step, (weights(2), jnp.full((8, 8), 0.1), jnp.arange(3), *batch()))
    assert len(program.arguments) == 6


def test_double_precision():
    with jax.enable_x64(True):
        args = jax.tree.map(lambda x: jnp.asarray(np.asarray(x), jnp.float64), (weights(2), *batch()))
        check_same(train_step(mlp_loss), args, tolerance=1e-12)


def test_splitting_twice_gives_the_same_text():
    texts = {split(train_step(mlp_loss), (weights(4), *batch()), FOUR).text() for _ in range(2)}
    assert len(texts) == 1


# ---- refusals


def refusal(step, args, *splitting, **options) -> str:
    with pytest.raises(HlorewriteError) as error:
        split(step, args, *splitting, **options)
    return str(error.value)


def test_marks_out_of_order():
    def loss(params, x, y):
        x = hlorewrite.stage(jnp.tanh(x @ params[0]), 2)
        x = hlorewrite.stage(jnp.tanh(x @ params[1]), 1)
        return jnp.mean((x @ params[2] - y) ** 2)

    said = refusal(train_step(loss), (weights(3), *batch()), "(2),(2),(2)")
    assert "stage 1 reads a value of stage 2: marks are out of order" in said
    assert said.startswith("tests/unit/pipelines/decorator/test_split_stages.py:") and "\n" not in said


def test_a_missing_mark():
    def loss(params, x, y):
        x = hlorewrite.stage(jnp.tanh(x @ params[0]), 2)
        return jnp.mean((x @ params[1] - y) ** 2)

    assert "stage 1 has no mark, stage 2 has one" in refusal(train_step(loss), (weights(2), *batch()))


def test_a_stage_without_work():
    def loss(params, x, y):
        x = hlorewrite.stage(hlorewrite.stage(jnp.tanh(x @ params[0]), 1), 2)
        return jnp.mean((x @ params[1] - y) ** 2)

    check_same(train_step(loss), (weights(2), *batch()), "(2),(2),(2)")


def test_a_last_mark_that_nothing_reads():
    def loss(params, x, y):
        x = hlorewrite.stage(jnp.tanh(x @ params[0]), 1)
        hlorewrite.stage(x, 2)
        return jnp.mean((x @ params[1] - y) ** 2)

    said = refusal(train_step(loss), (weights(2), *batch()), "(2),(2),(2)")
    assert "the marks make 2 stages, and 1f1b on 3 meshes runs 3" in said


def test_no_marks():
    def loss(params, x, y):
        return jnp.mean((x @ params[0] - y) ** 2)

    assert "the step has no stage marks" in refusal(train_step(loss), (weights(1), *batch()))


def test_marks_outside_the_loop():
    def step(params, xs, ys):
        return jax.tree.map(lambda p, g: p - g, params, jax.grad(mlp_loss)(params, xs[0], ys[0]))

    said = refusal(step, (weights(2), *batch()))
    assert "the mark of stage 1 is outside the loop over micro-batches" in said and "pipeline_steps.py:" in said


def test_marks_in_a_loop_inside_the_micro_batch():
    def loss(params, x, y):
        x, _ = lax.scan(lambda h, w: (hlorewrite.stage(jnp.tanh(h @ w), 1), None), x, params)
        return jnp.mean((x - y) ** 2)

    assert "is in a loop" in refusal(train_step(loss), (jnp.stack(weights(2)), *batch()))


def test_meshes_that_do_not_match_the_marks():
    said = refusal(train_step(mlp_loss), (weights(3), *batch()))
    assert "the marks make 3 stages, and 1f1b on 2 meshes runs 2" in said and "pipeline_steps.py:" in said


def test_micro_batches_that_differ_from_the_loop():
    said = refusal(train_step(mlp_loss), (weights(2), *batch()), microbatches=8)
    assert "the loop runs 4 micro-batches, not 8" in said and "pipeline_steps.py:" in said


def test_a_schedule_that_does_not_fit_the_micro_batches():
    assert "DualPipeV" in refusal(train_step(mlp_loss), (weights(4), *batch(2)), "(2),(2)", "dualpipe-v")


def test_checkpoint_around_other_marks_than_the_forward_has():
    def loss(params, x, y):
        kept, dropped = hlorewrite.stage((jnp.tanh(x @ params[0]), jnp.sin(x @ params[0])), 1)
        return jnp.mean((jnp.tanh(kept @ params[1]) - y) ** 2) + jnp.sum(dropped)

    said = refusal(train_step(jax.checkpoint(loss)), (weights(2), *batch()))
    assert "jax.checkpoint is around it" in said


def test_a_mesh_that_does_not_divide_an_argument():
    specs = [P(), P(None, "data"), P(None, "data")]
    said = refusal(train_step(mlp_loss), (weights(2), *batch()), "(2),(3)", specs=specs)
    assert "stage 1" in said and "[4, 4, 8]" in said and "data" in said


def test_a_later_stage_passes_an_earlier_one_what_it_needs_for_the_next_micro_batch():
    def step(params, xs, ys):
        def body(carry, part):
            total, last = carry
            loss, grads = jax.value_and_grad(mlp_loss)(params, part[0] * last, part[1])
            return (jax.tree.map(jnp.add, total, grads), loss), None

        (grads, _), _ = lax.scan(body, (jax.tree.map(jnp.zeros_like, params), jnp.ones(())), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads)

    said = refusal(step, (weights(2), *batch()))
    assert "stage 0 reads in its forward what stage 1 passes to the next micro-batch" in said


def test_a_backward_that_needs_its_order_and_a_schedule_that_reverses_it():
    def step(params, xs, ys):
        def body(total, part):
            grads = jax.grad(mlp_loss)(params, *part)
            return jax.tree.map(lambda t, g: 0.9 * t + g, total, grads), None

        grads, _ = lax.scan(body, jax.tree.map(jnp.zeros_like, params), (xs, ys))
        return jax.tree.map(lambda p, g: p - g, params, grads)

    check_same(step, (weights(2), *batch()), "(2),(2)", "1f1b")
    said = refusal(step, (weights(2), *batch()), "(2),(2)", "gpipe")
    assert "gpipe runs the backward passes of stage" in said and "there is not a sum" in said


def test_steps_that_print():
    def loss(params, x, y):
        jax.debug.print("{}", x[0, 0])
        return mlp_loss(params, x, y)

    said = refusal(train_step(loss), (weights(2), *batch()))
    assert said.startswith("tests/unit/pipelines/decorator/test_split_stages.py:") and "prints, calls back" in said


def test_uneven_batches():
    with pytest.raises(HlorewriteError, match=r"4 micro-batches do not divide a batch of 30 rows \(batch\[0\] \[30"):
        hlorewrite.mean_over_microbatches(lambda part: jnp.sum(part[0]), (jnp.ones((30, 8)),), 4)

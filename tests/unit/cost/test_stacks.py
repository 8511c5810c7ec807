"""Profiles of training stacks: where they come from, which one is taken, and public step times they were fitted to."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest
from predictions import public_runs

from hlorewrite.cost import Options, Parallelism, estimate, model, topology
from hlorewrite.cost.kernels.rates import KernelRates, stack, stack_names, stacks
from hlorewrite.cost.training.memory import memory_verdict
from hlorewrite.cost.training.workload import chosen_stack
from hlorewrite.errors import UsageError

RUNS = public_runs.read(public_runs.ROWS)
DENSE = [run for run in RUNS if run.kind == "dense"]
EXPERTS = [run for run in RUNS if run.kind == "moe"]


def test_every_profile_names_its_rows() -> None:
    assert stack_names()[0] == "xla"
    for profile in stacks().values():
        assert profile.about and profile.fitted_to
        low, high = profile.spread
        assert 0.5 < low < 1 < high < 2


@pytest.mark.parametrize(("name", "spec", "options", "expected"), [
    ("gpt3-175b", "selene-a100", Options(), "megatron-lm"),
    ("gpt3-175b", "h100", Options(flash_attention=False), "megatron-lm"),
    ("llama3-8b", "h100", Options(zero=1), "megatron"),
    ("llama3-8b", "h100", Options(zero=3), "torch-fsdp2"),
    ("gpt-22b", "h200", Options(zero=2), "torch-fsdp"),
    ("llama3-8b", "gb200-nvl72", Options(zero=3), "megatron"),
    ("qwen3-30b-a3b", "b200", Options(zero=1), "megatron-26.04"),
    ("qwen3-30b-a3b", "b200", Options(zero=3), "megatron-26.04"),
    ("mixtral-8x7b", "h100", Options(zero=3), "torch-fsdp2"),
    ("llama3-8b", "h100", Options(zero=3, stack="xla-flash"), "xla-flash"),
])
def test_the_profile_is_that_of_rows_like_what_is_asked(name: str, spec: str, options: Options, expected: str) -> None:
    assert chosen_stack(model(name), topology(spec), options).name == expected


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UsageError, match='there is no stack "megatrom"; did you mean "megatron"'):
        estimate(model("llama3-8b"), Parallelism(1, 1, 8, 8), topology("h100"), Options(stack="megatrom"))


def test_public_steps_of_dense_models() -> None:
    errors = [abs(error) for error in public_runs.errors_of(DENSE)]
    assert len(errors) == 102
    assert statistics.median(errors) <= 0.06 and statistics.mean(errors) <= 0.10 and max(errors) <= 0.30


def test_public_steps_of_mixtures_of_experts() -> None:
    errors = [abs(error) for error in public_runs.errors_of(EXPERTS)]
    assert len(errors) == 63 and statistics.median(errors) <= 0.12


def test_public_steps_of_mixtures_of_experts_without_their_stack() -> None:
    """With the profile that is taken where none is named."""
    runs = [replace(run, options=replace(run.options, stack="auto")) for run in EXPERTS]
    assert statistics.median(abs(error) for error in public_runs.errors_of(runs)) <= 0.12


def test_intervals_hold_four_of_five_rows() -> None:
    assert public_runs.held(DENSE) >= 0.8 and public_runs.held(EXPERTS) >= 0.8


def test_peaks_of_memory() -> None:
    rows = public_runs.memory_rows()
    assert len(rows) == 16
    assert all(abs(predicted / measured - 1) <= 0.15 for _, measured, predicted, _ in rows)


def test_no_run_that_ran_is_called_impossible() -> None:
    verdicts = [memory_verdict(run.shape, run.sizes, run.topology, run.options).fits for run in RUNS]
    assert "no" not in verdicts and "fits" in verdicts


def test_the_fit_recovers_constants() -> None:
    """From steps that were predicted with known constants, the fit of the same rows finds their times again."""
    known = public_runs.set_constants({name: stack(name) for name in public_runs.SHARED}, public_runs.CONSTANTS[:2],
                                      [0.5, 0.7])
    runs = [replace(run, row={**run.row, "measured_s": str(run.predicted_s(known[run.options.stack]))})
            for run in DENSE[:12]]
    fitted = public_runs.fit(runs, ("dense",))
    assert max(abs(error) for error in public_runs.errors_of(runs, fitted)) < 0.02


# ---- rates

def test_rates_of_products_by_generation_type_and_width() -> None:
    hopper, blackwell = (KernelRates(topology(name), stack("megatron")) for name in ("h100", "b200"))
    assert blackwell.product_rate("bf16") > hopper.product_rate("bf16")
    assert hopper.product_rate("f8") > hopper.product_rate("bf16") > hopper.product_rate("bf16", 256)
    assert blackwell.product_rate("f4") > blackwell.product_rate("mxf8") == blackwell.product_rate("f8")
    assert hopper.product_rate("bf16", experts=True) < hopper.product_rate("bf16")
    third = KernelRates(topology("gb300-nvl72"), stack("megatron"))
    assert third.product_rate("bf16") > KernelRates(topology("gb200-nvl72"), stack("megatron")).product_rate("bf16")


def test_xla_is_the_profile_of_passes_and_timelines() -> None:
    assert KernelRates(topology("h200")).stack is stack("xla")


# ---- what a configuration changes

LLAMA, H100 = model("llama3-8b"), topology("superpod-h100:4x8")


def test_narrow_types_narrow_linear_products_alone() -> None:
    b200 = topology("b200:1x8")
    sizes = Parallelism(1, 1, 8, 64)
    wide, eight, four = (estimate(LLAMA, sizes, b200, Options(dtype=dtype)) for dtype in ("bf16", "f8", "f4"))
    assert four.t_comp_s < eight.t_comp_s < wide.t_comp_s
    assert eight.t_comp_s > 0.5 * wide.t_comp_s  # attention, norms and conversions stay
    assert eight.t_dp_s == wide.t_dp_s  # messages are bf16
    assert eight.memory_bytes_per_gpu == wide.memory_bytes_per_gpu


def test_context_parallelism_splits_a_sequence() -> None:
    whole = estimate(LLAMA, Parallelism(1, 1, 32, 32), H100, Options(zero=1))
    split = estimate(LLAMA, Parallelism(1, 1, 8, 8, cp=4), H100, Options(zero=1))
    assert split.t_cp_s > 0 == whole.t_cp_s
    assert split.t_comp_s == pytest.approx(whole.t_comp_s / 4, rel=0.05)
    assert split.memory_bytes_per_gpu < whole.memory_bytes_per_gpu
    with pytest.raises(UsageError, match="not divisible by 3"):
        estimate(LLAMA, Parallelism(1, 1, 8, 8, cp=3), topology("h100:3x8"))


def test_stages_of_unequal_length() -> None:
    shape = model("llama3-405b")
    even, uneven = (estimate(replace(shape, layers=layers), Parallelism(8, 8, 16, 256), topology("superpod-h100:128x8"))
                    for layers in (128, 126))
    assert 0.95 * even.t_comp_s < uneven.t_comp_s <= even.t_comp_s  # the fullest stage has 16 layers in both
    with pytest.raises(UsageError, match="do not fill"):
        estimate(shape, Parallelism(8, 8, 16, 256, virtual_stages=32), topology("superpod-h100:128x8"))


def test_head_width_changes_attention() -> None:
    shape = model("qwen3-30b-a3b")
    assert shape.heads * shape.head_width == 2 * shape.hidden
    narrow = replace(shape, head_dim=64)
    sizes, topo = Parallelism(1, 1, 8, 64, ep=8), topology("b200:1x8")
    assert estimate(narrow, sizes, topo).t_comp_s < estimate(shape, sizes, topo).t_comp_s


@pytest.mark.parametrize(("name", "billions"), [
    ("llama3-8b", 8.03), ("llama3-70b", 70.55), ("llama3-405b", 405.85), ("qwen3-8b", 8.19), ("qwen3-32b", 32.76),
    ("qwen3-30b-a3b", 30.53), ("qwen3-235b-a22b", 235.09), ("deepseek-v3", 671.03), ("kimi-k2", 1026.4),
    ("gpt-oss-20b", 20.91), ("gpt-oss-120b", 116.83), ("mixtral-8x7b", 46.70), ("mixtral-8x22b", 140.63),
])
def test_presets_have_the_published_parameters(name: str, billions: float) -> None:
    """Totals that the authors publish, or the sizes of the tensors they publish."""
    assert model(name).parameters == pytest.approx(billions * 1e9, rel=1e-3)


@pytest.mark.parametrize(("name", "billions"), [
    ("qwen3-30b-a3b", 3.3), ("qwen3-235b-a22b", 22.0), ("deepseek-v3", 37.0), ("kimi-k2", 32.0), ("gpt-oss-120b", 5.1),
    ("gpt-oss-20b", 3.6), ("mixtral-8x7b", 12.9), ("mixtral-8x22b", 39.0),
])
def test_presets_have_the_published_active_parameters(name: str, billions: float) -> None:
    """As published; some authors count the table of the embedding, some do not."""
    shape = model(name)
    layers = shape.active_weights * shape.layers
    assert layers < billions * 1e9 < (layers + 2 * shape.embedding_parameters) * 1.02


def test_dense_layers_and_shared_experts_count() -> None:
    shape = model("deepseek-v3")
    assert shape.expert_layers == 58
    assert replace(shape, shared_experts=0).parameters < shape.parameters
    assert replace(shape, dense_layers=0).parameters > shape.parameters
    sizes, topo = Parallelism(1, 1, 64, 512, ep=64), topology("gb200-nvl72:1x64")
    assert estimate(replace(shape, shared_experts=0), sizes, topo).t_comp_s < estimate(shape, sizes, topo).t_comp_s


def test_experts_may_take_the_place_of_tensor_ranks() -> None:
    shape, topo = model("qwen3-30b-a3b"), topology("superpod-h100:32x8")
    sizes = Parallelism(8, 2, 16, 2048, ep=32)
    estimated = estimate(shape, sizes, topo)
    assert sizes.expert_split == 1 and estimated.t_ep_s > 0
    assert Parallelism(8, 2, 16, 2048, ep=16).expert_split == 2
    with pytest.raises(UsageError, match=r"t\*cp\*d = 32 is not divisible by ep = 64"):
        estimate(shape, Parallelism(8, 2, 16, 2048, ep=64), topo)


def test_partial_recomputation_lies_between_none_and_all() -> None:
    sizes = Parallelism(2, 4, 4, 64)
    def costs(options: Options) -> tuple[float, float]:
        estimated = estimate(LLAMA, sizes, H100, options)
        return estimated.iteration_time_s, estimated.memory_bytes_per_gpu
    none, some, full = (costs(options) for options in (Options(), Options(recompute="full", recompute_layers=4),
                                                       Options(recompute="full")))
    assert none[0] < some[0] < full[0] and none[1] > some[1] > full[1]
    assert costs(Options(recompute="full", recompute_layers=16)) == full


@pytest.mark.parametrize(("option", "part", "options"), [
    ("tensor_overlap", "t_tp_s", Options()), ("pipeline_overlap", "t_pp_s", Options()),
    ("data_overlap", "t_dp_s", Options()), ("expert_overlap", "t_ep_s", Options()),
    ("fsdp_overlap", "t_dp_s", Options(zero=3)),
])
def test_overlap_hides_its_part(option: str, part: str, options: Options) -> None:
    shape, sizes = model("mixtral-8x7b"), Parallelism(2, 2, 8, 64, ep=8)
    shown, hidden = (getattr(estimate(shape, sizes, H100, replace(options, **{option: share})), part)
                     for share in (0.0, 1.0))
    assert hidden < shown
    with pytest.raises(UsageError, match=f"{option} 1.5 is not a share"):
        estimate(shape, sizes, H100, replace(options, **{option: 1.5}))


def test_dispatch_once_a_host_sends_less_between_hosts() -> None:
    shape, sizes = model("qwen3-30b-a3b"), Parallelism(1, 1, 16, 1024, ep=16)
    once, every = (estimate(shape, sizes, topology("superpod-h100:2x8"), Options(dispatch_once=flag)).t_ep_s
                   for flag in (True, False))
    assert once < 0.5 * every
    inside = [estimate(shape, Parallelism(1, 1, 8, 1024, ep=8), topology("superpod-h100:1x8"),
                       Options(dispatch_once=flag)).t_ep_s for flag in (True, False)]
    assert inside[0] == inside[1]


def test_gathers_of_fsdp_run_in_each_micro_batch() -> None:
    one, four = (estimate(LLAMA, Parallelism(1, 1, 32, 128, micro), H100, Options(zero=3, fsdp_overlap=0.0)).t_dp_s
                 for micro in (4, 1))
    assert four == pytest.approx(4 * one)


def test_fsdp_hides_under_compute_up_to_a_share() -> None:
    options = Options(zero=3, grad_bytes=4)
    long, short = (estimate(replace(LLAMA, seq=seq), Parallelism(1, 1, 32, 32), H100, options)
                   for seq in (8192, 512))
    assert long.t_dp_s < short.t_dp_s


def test_the_interval_is_that_of_the_profile() -> None:
    estimated = estimate(LLAMA, Parallelism(1, 1, 32, 64), H100)
    low, high = stack("megatron").spread
    assert estimated.iteration_low_s == pytest.approx(low * estimated.iteration_time_s)
    assert estimated.iteration_high_s == pytest.approx(high * estimated.iteration_time_s)


def test_sequence_parallelism_holds_whole_rows() -> None:
    sizes = Parallelism(1, 8, 4, 64)
    from hlorewrite.cost.training.memory import whole_rows_bytes
    assert float(whole_rows_bytes(LLAMA, sizes.arrays(), Options())[0]) == 0
    assert float(whole_rows_bytes(LLAMA, sizes.arrays(), Options(sequence_parallel=True))[0]) == 3 * 8192 * 4096 * 2


def test_verdicts() -> None:
    def says(micro: int, **options: object) -> str:
        sizes = Parallelism(1, 1, 8, 8 * micro, micro)
        return memory_verdict(LLAMA, sizes, topology("h100"), Options(zero=3, **options)).fits  # pyright: ignore[reportArgumentType]
    assert says(1, recompute="full") == "fits" and says(1) == "tight" and says(2) == "recompute"
    assert memory_verdict(model("llama3-405b"), Parallelism(1, 1, 8, 8), topology("h100"), Options()).fits == "no"


def test_many_at_once_agree_with_one_by_one_under_every_option() -> None:
    shape = model("mixtral-8x7b")
    options = Options(zero=3, dtype="f8", recompute="full", recompute_layers=3, sequence_parallel=True, grad_bytes=2)
    rows = [(1, 4, 8, 64, 1, 8, 1, 1), (3, 2, 4, 64, 2, 8, 1, 2), (2, 2, 4, 64, 4, 4, 2, 3), (5, 1, 9, 72, 1, 1, 1, 1)]
    for row in rows:
        sizes = Parallelism(*row)
        gpus = sizes.pp * sizes.tp * sizes.cp * sizes.dp
        topo = topology("h100").sized(gpus, 1)
        shaped = replace(shape, seq=4096 * 3)
        one = estimate(shaped, sizes, topo, options)
        from hlorewrite.cost import estimate_many
        many = estimate_many(shaped, Parallelism(*(np.array([value, value]) for value in row)), topo, options)
        for key, value in one.as_dict().items():
            assert many.as_dict()[key][1] == pytest.approx(value), key

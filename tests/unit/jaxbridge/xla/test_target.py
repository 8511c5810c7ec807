"""Targets: what is accepted, and the sentence for each mistake."""

from __future__ import annotations

import pytest

from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.target import described_gpus, parse_target


def test_every_described_gpu_states_its_source_and_is_reachable_by_name():
    assert described_gpus() == ["a100", "b200", "h100", "h200"]
    for name in described_gpus():
        target = parse_target(f"{name}:4x8")
        assert (target.hosts, target.devices_per_host, target.devices) == (4, 8, 32)
        assert "openxla/xla" in target.description
        assert 'platform_name: "CUDA"' in target.description


def test_one_number_means_one_host():
    assert (parse_target("h100:8").hosts, parse_target("h100:8").devices) == (1, 8)
    assert parse_target("cpu:8").devices == 8


@pytest.mark.parametrize(("text", "words"), [
    ("h300:1x8", 'unknown target "h300:1x8"; did you mean'), ("h200", "does not say how many GPUs"),
    ("h200:0x8", "does not say how many GPUs"), ("cpu", "does not say how many CPU devices"),
    ("cpu:2x4", "does not say how many CPU devices"), ("gpu:8", "gives a size"), ("", 'unknown target ""'),
])
def test_mistakes_are_named(text: str, words: str):
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(("version", "platform", "wrong"), [
    ((0, 10, 0), "cuda", True), ((0, 10, 2), "gpu", True), ((0, 11, 2), "rocm", True), ((0, 11, 3), "cuda", True),
    ((0, 10, 2), "cpu", False), ((0, 10, 2), "tpu", False)])
def test_the_miscompiling_pass_is_switched_off_exactly_where_it_is_wrong(version: tuple, platform: str, wrong: bool):
    assert bool(miscompile_workarounds.options(version, platform)) is wrong

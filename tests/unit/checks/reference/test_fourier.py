"""Fourier transforms and complex constants in the oracle, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hlorewrite.checks.reference import execute
from hlorewrite.checks.reference.check import check
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.load import parse

C, F = "complex<f32>", "f32"


def transform(kind: str, source: str, target: str, lengths: str):
    """A module with one transform."""
    return parse(f"func.func @main(%a: tensor<{source}>) -> tensor<{target}> {{ %r = stablehlo.fft %a, type = {kind}, "
                 f"length = [{lengths}] : (tensor<{source}>) -> tensor<{target}> return %r : tensor<{target}> }}")


@pytest.mark.parametrize(("kind", "source", "target", "lengths", "expected"), [
    ("FFT", f"3x5x{C}", f"3x5x{C}", "5", np.fft.fft), ("FFT", f"2x3x4x{C}", f"2x3x4x{C}", "3, 4", np.fft.fft2),
    ("IFFT", f"3x5x{C}", f"3x5x{C}", "5", np.fft.ifft), ("IFFT", f"2x3x4x{C}", f"2x3x4x{C}", "3, 4", np.fft.ifft2),
    ("RFFT", f"3x6x{F}", f"3x4x{C}", "6", np.fft.rfft), ("RFFT", f"3x5x{F}", f"3x3x{C}", "5", np.fft.rfft),
    ("RFFT", f"2x3x4x{F}", f"2x3x3x{C}", "3, 4", np.fft.rfft2),
    ("IRFFT", f"3x4x{C}", f"3x6x{F}", "6", lambda x: np.fft.irfft(x, 6)),
    ("IRFFT", f"3x3x{C}", f"3x5x{F}", "5", lambda x: np.fft.irfft(x, 5)),
    ("IRFFT", f"2x3x3x{C}", f"2x3x4x{F}", "3, 4", lambda x: np.fft.irfft2(x, (3, 4))),
])
def test_transforms_are_those_of_numpy(kind: str, source: str, target: str, lengths: str,
                                       expected: Callable[[np.ndarray], np.ndarray]) -> None:
    generator, shape = np.random.default_rng(0), [int(n) for n in source.split("x") if n.isdigit()]
    value = generator.standard_normal(shape)
    if source.endswith(C):
        value = (value + 1j * generator.standard_normal(shape)).astype(np.complex64)
    value = value.astype(np.complex64 if source.endswith(C) else np.float32)
    ((actual,),) = execute(transform(kind, source, target, lengths), [[value]])
    np.testing.assert_allclose(actual, expected(value), rtol=1e-4, atol=1e-5)


def test_very_long_transforms_are_refused() -> None:
    with pytest.raises(CannotExecute, match="over 4096 elements is too long"):
        execute(transform("FFT", f"4096x{C}", f"4096x{C}", "4096"), [[np.zeros(4096, np.complex64)]])


@pytest.mark.parametrize(("target", "equal"), [(1, True), (0, False)])
def test_devices_that_receive_nothing_hold_complex_zeros(target: int, equal: bool) -> None:
    def sent(to: int):
        return parse(f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
          func.func @main(%a: tensor<2x{C}>) -> tensor<2x{C}> {{
            %c = stablehlo.constant dense<[(1.0, 2.0), (0.0, -1.0)]> : tensor<2x{C}>
            %b = stablehlo.multiply %a, %c : tensor<2x{C}>
            %p = "stablehlo.collective_permute"(%b) <{{source_target_pairs = dense<[[0, {to}]]> : tensor<1x2xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}> : (tensor<2x{C}>) -> tensor<2x{C}>
            return %p : tensor<2x{C}> }} }}""")
    assert check(sent(1), sent(target)).equal is equal

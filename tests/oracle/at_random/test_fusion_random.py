"""all-reduce-fusion on random straight-line programs: values stay, whatever waits for whatever."""

from __future__ import annotations

import random

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
from hlorewrite.passmanager.base import PassContext

PREFIX = """module @random attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %n: tensor<4x8xi32>, %m: tensor<4x8xi8>)"""
TYPES = {"f32": "tensor<4x8xf32>", "i32": "tensor<4x8xi32>", "i8": "tensor<4x8xi8>"}
GROUPS = ("[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]")
SHAPES = {"[[0, 1, 2, 3]]": "1x4", "[[0, 1], [2, 3]]": "2x2", "[[0, 2], [1, 3]]": "2x2"}


class FusedProgram:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values = {"f32": ["%a", "%b"], "i32": ["%n"], "i8": ["%m"]}
        self.count = 0

    def emit(self, element: str, text: str) -> None:
        """Writes an op with one result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"    {name} = {text}")
        self.values[element].append(name)

    def read(self, element: str) -> str:
        """Some value."""
        return self.random.choice(self.values[element])

    def step(self) -> None:
        """Writes one op."""
        element = self.random.choice(["f32", "f32", "f32", "i32", "i8"])
        kind, value, shape = TYPES[element], self.read(element), self.random.randrange(9)
        groups = self.random.choice(GROUPS)
        head = f"<{{HANDLE replica_groups = dense<{groups}> : tensor<{SHAPES[groups]}xi64>".replace(
            "HANDLE", "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,")
        reducer = (f" ({{ ^bb0(%x: tensor<{element}>, %y: tensor<{element}>): %z = stablehlo."
                   f"{self.random.choice(['add', 'add', 'maximum'])} %x, %y : tensor<{element}>  "
                   f"stablehlo.return %z : tensor<{element}> }})")
        if shape < 5:
            self.emit(element, f'"stablehlo.all_reduce"({value}) {head}}}>{reducer} : ({kind}) -> {kind}')
        elif shape == 5 and element == "f32":
            members = 4 // len(eval(groups))
            dim = self.random.randrange(2)
            shard = (4 * 8 // members // 8, 8) if dim == 0 and members == 2 else (4 // members, 8)
            shard = shard if dim == 0 else (4, 8 // members)
            small = f"tensor<{shard[0]}x{shard[1]}xf32>"
            self.count += 1
            name = f"%s{self.count}"
            self.lines.append(f'    {name} = "stablehlo.reduce_scatter"({value}) {head}, scatter_dimension = {dim} : '
                              f'i64}}>{reducer} : ({kind}) -> {small}')
            self.emit("f32", f'"stablehlo.all_gather"({name}) {head}, all_gather_dim = {dim} : i64}}> : ({small}) -> '
                      f'{kind}')
        elif shape == 6:
            pairs = self.random.choice(["[[0, 1], [1, 2], [2, 3]]", "[[0, 1], [1, 0], [3, 2]]"])
            self.emit(element, f'"stablehlo.collective_permute"({value}) <{{channel_handle = '
                      f"#stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{pairs}> : "
                      f"tensor<3x2xi64>}}> : ({kind}) -> {kind}")
        else:
            other = self.read(element)
            name = self.random.choice(["add", "subtract", "maximum"])
            self.emit(element, f"stablehlo.{name} {value}, {other} : {kind}")

    def text(self, steps: int) -> str:
        """The program."""
        for _ in range(steps):
            self.step()
        outs = [(e, v) for e, names in self.values.items() for v in names[-4:]]
        types = ", ".join(TYPES[e] for e, _ in outs)
        return "\n".join([f"{PREFIX} -> ({types}) {{", *self.lines,
                          f"    return {', '.join(v for _, v in outs)} : {types}", "  }", "}"])


@pytest.mark.parametrize("seed", range(40))
def test_values_stay(seed: int) -> None:
    """Whatever is fused, the interpreter computes the same; a second run finds nothing."""
    module = parse(FusedProgram(seed).text(18))
    before = module.clone()
    options = [{}, {"bucket_bytes": 300}, {"max_buckets": 2, "variadic": True}][seed % 3]
    changed = AllReduceFusion(topology="h200:1x4", **options).run(module, PassContext())
    assert not module.verify()
    assert changed == (module.text() != before.text())
    assert check(before, module, seed=seed).equal
    if seed % 3 == 0:
        text = module.text()
        assert not AllReduceFusion(topology="h200:1x4").run(module, PassContext())
        assert module.text() == text


def test_most_programs_change() -> None:
    """The programs above are not all left alone."""
    changed = 0
    for seed in range(20):
        module = parse(FusedProgram(seed).text(18))
        changed += AllReduceFusion(topology="h200:1x4").run(module, PassContext())
    assert changed >= 15

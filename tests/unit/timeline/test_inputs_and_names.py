"""Folders of dumps, names of parameters, trip counts of the source module."""

from __future__ import annotations

from pathlib import Path

import pytest
from timeline_schedules import ADD, BIG, GROUPS, kernel, scheduled

from hlorewrite.cost import topology
from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.dump_chain import dumped_module
from hlorewrite.ir.load import parse
from hlorewrite.timeline import simulate
from hlorewrite.timeline.simulate import line_trips

QUIET = scheduled(kernel("k", root=True))
LOUD = scheduled(f"  ROOT %r = {BIG} all-reduce(%p), {GROUPS}, to_apply=%add")


def dump(folder: Path, **modules: str) -> str:
    """A folder as XLA writes it."""
    for number, (name, text) in enumerate(modules.items()):
        (folder / f"module_{number:04}.jit_{name}.sm_9.0a_gpu_after_optimizations.txt").write_text(text)
        (folder / f"module_{number:04}.jit_{name}.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt").write_text("")
    return str(folder)


def test_the_module_that_communicates_is_taken(tmp_path: Path) -> None:
    folder = dump(tmp_path, convert=QUIET, step=LOUD, init=QUIET)
    report = tmp_path / "module_0001.jit_step.sm_9.0a_gpu_after_optimizations-memory-usage-report.txt"
    report.write_text("Memory Space: default (color=0)\nTotal bytes: 4096 (4.0KiB)\n")
    found = dumped_module(folder)
    assert (found.name, found.memory_bytes, found.text) == ("jit_step", 4096, LOUD)
    assert dumped_module(folder, "jit_init").memory_bytes is None
    assert dumped_module(folder, "module_0000.jit_convert").text == QUIET


@pytest.mark.parametrize(("modules", "wanted", "says"), [
    ({"one": LOUD, "two": LOUD + "\n"}, "", "contains 2 modules; name one with --module: jit_two, jit_one"),
    ({"one": QUIET, "two": QUIET}, "", "contains 2 modules"),
    ({"one": LOUD}, "step", 'no module "step"; there is jit_one')])
def test_several_modules_are_listed(modules: dict[str, str], wanted: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        dumped_module(dump(tmp_path, **modules), wanted)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("file", "says"), [
    ("module_0000.jit_step.cpu_after_optimizations.txt", "XLA:CPU's"),
    ("module_0000.jit_step.before_optimizations.txt", "gpu_after_optimizations"), ("", "gpu_after_optimizations")])
def test_other_folders_are_refused(file: str, says: str, tmp_path: Path) -> None:
    if file:
        (tmp_path / file).write_text("HloModule m")
    with pytest.raises(InputError, match=says):
        dumped_module(str(tmp_path))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        dumped_module(str(tmp_path / "nowhere"))


NAMED = """HloModule m, is_scheduled=true, num_partitions=8
""" + ADD + """
%update (u0: f32[64], u1: f32[64], u2: f32[64], u3: f32[64]) -> (f32[64], f32[64]) {
  %u0 = f32[64]{0} parameter(0)
  %u1 = f32[64]{0} parameter(1)
  %u2 = f32[64]{0} parameter(2)
  %u3 = f32[64]{0} parameter(3)
  %ua = f32[64]{0} subtract(%u0, %u2)
  %ub = f32[64]{0} subtract(%u1, %u3)
  ROOT %ut = (f32[64]{0}, f32[64]{0}) tuple(%ua, %ub)
}
%body (b: (f32[64], f32[64], f32[16])) -> (f32[64], f32[64], f32[16]) {
  %b = (f32[64]{0}, f32[64]{0}, f32[16]{0}) parameter(0)
  %ga = f32[64]{0} get-tuple-element(%b), index=0
  %gb = f32[64]{0} get-tuple-element(%b), index=1
  %shard = f32[16]{0} get-tuple-element(%b), index=2
  %gather = f32[64]{0} all-gather(%shard), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  %na = f32[64]{0} negate(%gather)
  %ra = f32[64]{0} all-reduce(%na), GROUPS, to_apply=%add
  %nb = f32[64]{0} negate(%gather)
  %rb = f32[64]{0} all-reduce(%nb), GROUPS, to_apply=%add
  %sa = f32[64]{0} add(%ga, %ra)
  %sb = f32[64]{0} add(%gb, %rb)
  ROOT %bt = (f32[64]{0}, f32[64]{0}, f32[16]{0}) tuple(%sa, %sb, %shard)
}
ENTRY %main (w: f32[64], v: f32[64], q: f32[16], x: f32[8]) -> (f32[64], f32[64]) {
  %w = f32[64]{0} parameter(0), metadata={op_name="params[\\'w\\']"}
  %v = f32[64]{0} parameter(1), metadata={op_name="params[\\'v\\']"}
  %q = f32[16]{0} parameter(2), metadata={op_name="shards"}
  %x = f32[8]{0} parameter(3)
  %z = f32[64]{0} broadcast(%x), dimensions={}
  %t = (f32[64]{0}, f32[64]{0}, f32[16]{0}) tuple(%z, %z, %q)
  %l = (f32[64]{0}, f32[64]{0}, f32[16]{0}) while(%t), condition=%add, body=%body, KNOWN
  %a = f32[64]{0} get-tuple-element(%l), index=0
  %c = f32[64]{0} get-tuple-element(%l), index=1
  %lone = f32[8]{0} all-reduce(%x), GROUPS, to_apply=%add
  ROOT %f = (f32[64]{0}, f32[64]{0}) fusion(%w, %v, %a, %c), kind=kLoop, calls=%update
}
""".replace("KNOWN", 'backend_config={"known_trip_count":{"n":"4"}}')


def test_collectives_carry_the_names_of_their_parameters() -> None:
    step = simulate(NAMED.replace("GROUPS", GROUPS), topology("h200:1x8"))
    assert {one.name: one.tensor for one in step.collectives} == {
        "gather": "shards", "ra": "params['w']", "rb": "params['v']", "lone": "f32[8]"}


SOURCE = """func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<6> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%x = %a, %i = %zero) : tensor<4xf32>, tensor<i32>
  cond {
    %go = stablehlo.compare LT, %i, LIMIT, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %x, %j : tensor<4xf32>, tensor<i32>
  } loc("train.py":12:3)
  return %r#0, %r#1 : tensor<4xf32>, tensor<i32>
}
"""


def test_the_source_module_gives_trip_counts_that_the_hlo_lost() -> None:
    shape = f"({BIG}, s32[])"
    loop = (f"  %n = s32[] constant(0)\n  %t = {shape} tuple(%p, %n)\n  ROOT %w = {shape} while(%t), condition=%add, "
            'body=%body, metadata={source_file="train.py" source_line=12 source_column=3}')
    body = (f"%body (b: {shape}) -> {shape} {{\n  %b = {shape} parameter(0)\n  %q = {BIG} get-tuple-element(%b), "
            f"index=0\n{kernel('k', 'q')}\n  %i = s32[] get-tuple-element(%b), index=1\n"
            f"  ROOT %o = {shape} tuple(%q, %i)\n}}\n")
    text, cluster = scheduled(loop, body), topology("h200:1x8")
    known = line_trips(parse(SOURCE.replace("LIMIT", "%end"), name="in.mlir"))
    assert known == {"train.py:12:3": 6}
    step = simulate(text, cluster, kernel_times={"k": 1.0}, line_trips=known)
    assert step.complete and step.compute_s == pytest.approx(6.0, rel=1e-3)
    assert any("from the source module" in note for note in step.notes)
    assert line_trips(parse(SOURCE.replace("LIMIT", "%n"), name="in.mlir")) == {}

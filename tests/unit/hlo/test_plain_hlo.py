"""HLO of any stage in the part of the language that jaxlib converts, and the chain of programs of a dump."""

# ruff: noqa: E501 (HLO text)

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.aliasing import alias_fault
from hlorewrite.hlo.dump_chain import dump_chain
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.plain_hlo import expanded_call, plain_hlo, split_attributes

HEADER = "HloModule m, num_partitions=8\n\n"


def plain(*lines: str) -> list[str]:
    """The instructions of an entry, without metadata."""
    text = HEADER + "ENTRY %main () -> f32[] {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"
    made = plain_hlo(parse_hlo(text)).text.splitlines()[3:]
    return [line.partition(", metadata=")[0].strip() for line in made if line.startswith("  ")]


def test_asynchronous_pairs_are_the_op_they_run():
    assert plain("%p = f32[2]{0} parameter(0)",
                 "%s = (f32[2]{0}, f32[16]{0}) all-gather-start(%p), channel_id=1, replica_groups={}, dimensions={0}",
                 "ROOT %d = f32[16]{0} all-gather-done(%s)")[1:] == [
        "ROOT %s = f32[16]{0} all-gather(%p), channel_id=1, replica_groups={}, dimensions={0}"]


def test_groups_along_mesh_axes_become_lists():
    line = plain("%p = f32[2]{0} parameter(0)", "ROOT %s = f32[2]{0} collective-broadcast(%p), channel_id=1, "
                 "replica_groups=mesh['a'=2,'b'=4] {'a'}")[1]
    assert line.endswith("replica_groups={{0,4},{1,5},{2,6},{3,7}}")


def test_a_permute_of_several_arrays_is_one_for_each():
    lines = plain("%p = f32[2]{0} parameter(0)", "%q = f32[3]{0} parameter(1)",
                  "ROOT %s = (f32[2]{0}, f32[3]{0}) collective-permute(%p, %q), source_target_pairs={{0,1}}")
    assert lines[2:5] == ["%s.part0 = f32[2]{0} collective-permute(%p), source_target_pairs={{0,1}}",
                          "%s.part1 = f32[3]{0} collective-permute(%q), source_target_pairs={{0,1}}",
                          "ROOT %s = (f32[2]{0}, f32[3]{0}) tuple(%s.part0, %s.part1)"]


def test_a_constant_without_its_elements_is_refused():
    with pytest.raises(InputError, match="elements of c are left out"):
        plain("ROOT %c = f32[64]{0} constant({...})")


def test_settings_of_a_custom_call_are_kept_but_when_it_runs():
    line = plain("%p = f32[2]{0} parameter(0)", 'ROOT %s = f32[2]{0} custom-call(%p), custom_call_target="mine", '
                 'backend_config={"alpha":2,"operation_queue_id":"0"}')[1]
    assert line.endswith('custom_call_target="mine", backend_config={"alpha": 2}')


@pytest.mark.parametrize(("config", "known"), [
    ('{"alpha_real":1,"beta":0,"alpha_imag":0,"epilogue":"DEFAULT","dot_dimension_numbers":{"lhs_contracting_dimensions":'
     '["1"],"rhs_contracting_dimensions":["0"]}}', True),
    ('{"alpha_real":2,"beta":0,"alpha_imag":0,"epilogue":"DEFAULT","dot_dimension_numbers":{"lhs_contracting_dimensions":'
     '["1"],"rhs_contracting_dimensions":["0"]}}', False),
    ('{"alpha_real":1,"beta":0,"alpha_imag":0,"epilogue":"BIAS","dot_dimension_numbers":{"lhs_contracting_dimensions":'
     '["1"],"rhs_contracting_dimensions":["0"]}}', False),
    ('{"alpha_real":1,"a_new_setting":3,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],'
     '"rhs_contracting_dimensions":["0"]}}', False)])
def test_a_product_of_cublas_is_one_when_nothing_is_added(config: str, known: bool):
    call = parse_hlo(HEADER + "ENTRY %main () -> f32[] {\n  %p = f32[4,4]{1,0} parameter(0)\n  ROOT %c = (f32[4,4]{1,0}, "
                     "s8[64]{0}) custom-call(%p, %p)\n}\n").computations["main"].instructions["c"]
    found = expanded_call(call, ["p", "p"], {"custom_call_target": '"__cublas$lt$matmul"',
                                             "backend_config": f'{{"gemm_backend_config":{config}}}'})
    assert (found is not None) is known
    if found is not None:
        assert found[0].endswith("dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}")


def test_attributes_with_brackets_and_strings():
    assert split_attributes(", window={size=3x3 pad=1_1x1_1}, metadata={op_name=\"a, b={}\"}, dims={0,1}") == [
        ("window", "{size=3x3 pad=1_1x1_1}"), ("metadata", '{op_name="a, b={}"}'), ("dims", "{0,1}")]


def test_memory_is_shared_with_arguments_that_are_given_up():
    donor = "HloModule m, buffer_donor={ (1, {}) }"
    assert alias_fault(donor, "HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }") == ""
    assert "argument 2" in alias_fault(donor, "HloModule m, input_output_alias={ {0}: (2, {}, may-alias) }")
    assert "any more" in alias_fault("HloModule m, input_output_alias={ {}: (0, {}, must-alias) }", "HloModule m")


def _program(op: str) -> str:
    return f"HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n  ROOT %r = f32[] {op}(%p)\n}}\n"


def test_the_chain_of_a_dump(tmp_path: Path):
    files = {"before_optimizations": "negate", "0000.simplification.after_pipeline-start.before_algsimp": "negate",
             "0001.simplification.after_algsimp.before_cse": "abs", "0002.spmd-cleanup.after_dce": "tanh",
             "cpu_after_optimizations": "tanh"}
    for name, op in files.items():
        (tmp_path / f"module_0003.jit_f.{name}.txt").write_text(_program(op))
    module, stages = dump_chain(tmp_path)
    assert module == "module_0003.jit_f"
    assert [(stage.pass_name, stage.local) for stage in stages] == [
        ("before_optimizations", False), ("simplification/algsimp", False), ("spmd-cleanup/dce", True)]
    with pytest.raises(UsageError, match="contains no module jit_g"):
        dump_chain(tmp_path, "jit_g")


def test_a_folder_without_a_dump(tmp_path: Path):
    with pytest.raises(InputError, match="contains no dump of XLA's passes"):
        dump_chain(tmp_path)

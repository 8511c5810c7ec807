"""Whether a plan fits, and what its module is checked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hlorewrite.errors import PlanMismatch
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.fingerprint import flags_text, made_for, pipeline_text, signature_digest
from hlorewrite.lockfile.remarks import remarks_of
from hlorewrite.lockfile.replay import fitting
from hlorewrite.lockfile.stored import restored, stored_text
from hlorewrite.passmanager.spec import parse_pipeline

ORIGINAL = """func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.custom_call @mine(%0) {backend_config = "1"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
RESULT = ORIGINAL.replace("stablehlo.add", "stablehlo.multiply")
WANTED = {"jaxlib": "0.10.2"}


def plan_of(result: Module) -> PlanDocument:
    return PlanDocument("main", WANTED, "", {}, {}, (), digest=result.digest(), module=stored_text(result, "a.plan"))


def refusal(text: str) -> str:
    """Why a module is not put in the place of the original."""
    with pytest.raises(PlanMismatch) as caught:
        restored(plan_of(parse(text)), parse(ORIGINAL), "a.plan")
    assert "\n" not in str(caught.value)
    return caught.value.what


def test_a_plan_that_fits_gives_its_module():
    found = fitting(plan_of(parse(RESULT)), WANTED, parse(ORIGINAL), "a.plan")
    assert found.module is not None and found.module.digest() == parse(RESULT).digest()
    unchanged = replace(found.document, module="", digest="")
    assert fitting(unchanged, WANTED, parse(ORIGINAL), "a.plan").module is None


def test_a_plan_for_something_else_does_not_fit():
    with pytest.raises(PlanMismatch, match=r"a.plan: the plan of main does not fit: jaxlib 0.10.2 -> 0.10.3"):
        fitting(plan_of(parse(RESULT)), {"jaxlib": "0.10.3"}, parse(ORIGINAL), "a.plan")


def test_a_module_of_another_digest_is_refused():
    wrong = replace(plan_of(parse(RESULT)), digest="0" * 64)
    with pytest.raises(PlanMismatch, match="digest differs"):
        restored(wrong, parse(ORIGINAL), "a.plan")


def test_a_module_that_does_not_parse_is_refused():
    for text in ("module {", "\0", ""):
        with pytest.raises(PlanMismatch, match="cannot be read"):
            restored(replace(plan_of(parse(RESULT)), module=text), parse(ORIGINAL), "a.plan")


@pytest.mark.parametrize(("old", "new", "words"), [
    ("{tf.aliasing_output = 0 : i32}", "", "lost tf.aliasing_output"), ("4xf32", "5xf32", "became"),
    ('"1"', '"2"', "custom call that the step does not have: mine"), ("@mine", "@theirs", "does not have: theirs")])
def test_a_module_that_may_not_replace_the_step_is_refused(old: str, new: str, words: str):
    assert words in refusal(RESULT.replace(old, new))


def test_remarks_that_are_none_are_refused():
    for rewrites in (({"kind": "applied"},), ({"kind": "x", "rule": "", "sentence": "", "location": ""},)):
        with pytest.raises(PlanMismatch, match="not a complete plan"):
            remarks_of(replace(plan_of(parse(RESULT)), rewrites=rewrites), "a.plan")


def test_made_for_names_what_counts_and_no_folder(tmp_path):
    rules = tmp_path / "mine.hlopat"
    rules.write_text("// none\n")
    passes = parse_pipeline(f"rules{{files={rules}}}")
    made = made_for(parse(ORIGINAL), passes, "", keep="better", proof=False, target=None)
    assert str(tmp_path) not in str(made) and made["passes"] == pipeline_text(passes)
    assert made["files"].startswith("mine.hlopat ") and made["keep"] == "better"
    assert not {"proof", "target", "topology"} & set(made)
    assert made_for(parse(ORIGINAL), passes, "", memory_budget=0)["memory_budget"] == "0"
    rules.write_text("// changed\n")
    assert made_for(parse(ORIGINAL), passes, "")["files"] != made["files"]
    assert made_for(parse(RESULT), passes, "")["module"] != made["module"]
    assert flags_text({"xla_dump_to": "/tmp", "a": 1}) == "a=1"


def test_the_signature_is_that_of_arguments_and_results_not_of_the_body():
    assert signature_digest(parse(ORIGINAL)) == signature_digest(parse(RESULT))
    assert signature_digest(parse(ORIGINAL)) != signature_digest(parse(ORIGINAL.replace("4xf32", "5xf32")))
    assert signature_digest(parse(ORIGINAL)) != signature_digest(
        parse(ORIGINAL.replace("{tf.aliasing_output = 0 : i32}", "")))

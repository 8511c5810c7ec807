"""The text of a plan, and what is refused as one."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from hlorewrite.errors import OutputError, PlanMismatch, UsageError
from hlorewrite.lockfile import document as documents
from hlorewrite.lockfile.document import PlanDocument, read_document
from hlorewrite.lockfile.files import PlanFiles, checked_files, read_plan, write_plan
from hlorewrite.lockfile.remarks import without_folders
from hlorewrite.lockfile.replay import differences

GOLDEN = '''{
  "checksum": "CHECKSUM",
  "decision": {
    "compiled": "rewritten",
    "memory": null
  },
  "format": "hlorewrite plan",
  "format_version": 1,
  "jax": "0.10.2",
  "made_for": {
    "devices": "8 x CPU",
    "jaxlib": "0.10.2"
  },
  "notices": [
    "said once"
  ],
  "report": {
    "before": [
      {"bytes": 4, "kind": "all_reduce"}
    ]
  },
  "result": "d1",
  "rewrites": [
    {"kind": "applied", "rule": "fold"}
  ],
  "step": "step",
  "stored_module": [
    "MODULE"
  ]
}
'''


def example(**changes: Any) -> PlanDocument:
    data: dict[str, Any] = {"step": "step", "made_for": {"jaxlib": "0.10.2", "devices": "8 x CPU"}, "jax": "0.10.2",
                            "decision": {"compiled": "rewritten", "memory": None},
                            "report": {"before": [{"kind": "all_reduce", "bytes": 4}]},
                            "rewrites": ({"rule": "fold", "kind": "applied"},), "notices": ("said once",),
                            "digest": "d1", "module": "module {}\n"}
    return PlanDocument(**{**data, **changes})


def sealed(data: dict[str, Any]) -> bytes:
    """A document with a right checksum, whatever it holds."""
    data.pop("checksum", None)
    return json.dumps({**data, "checksum": documents._checksum(data)}).encode()


def test_the_text_of_a_plan_is_the_golden_one():
    text = example().text()
    shown = json.loads(text)
    module = b64encode(zlib.compress(b"module {}\n", 9)).decode()  # zlibs differ in what they make of it
    assert text == GOLDEN.replace("MODULE", module).replace("CHECKSUM", shown["checksum"])
    assert len(shown["checksum"]) == 64 and list(shown) == sorted(shown)
    assert read_document(text.encode(), "a.plan") == example()


def test_a_plan_of_other_content_has_another_checksum():
    assert json.loads(example().text())["checksum"] != json.loads(example(digest="d2").text())["checksum"]


def truncated() -> bytes:
    return example().text().encode()[:-40]


def edited() -> bytes:
    return example().text().replace("8 x CPU", "4 x CPU").encode()


def newer() -> bytes:
    return sealed({**json.loads(example().text()), "format_version": 2})


def changed(**parts: Any) -> bytes:
    return sealed({**json.loads(example().text()), **parts})


@pytest.mark.parametrize(("raw", "words"), [
    (b"", "not JSON"), (truncated(), "cut short"), (edited(), "its checksum differs"), (newer(), "plan format 2"),
    (b"\xff\xfe{}", "not UTF-8"), (b"[]", "not a JSON object"), (b"{}", "not a plan of hlorewrite"),
    (b"[" * 100_000, "not JSON"), (changed(stored_module=["%%%"]), "not a complete plan"),
    (changed(stored_module=[b64encode(zlib.compress(b"x")[:-3]).decode()]), "not a complete plan"),
    (changed(stored_module=3), "not a complete plan"), (changed(made_for=[]), "not a complete plan"),
    (changed(made_for={"jaxlib": 3}), "not a complete plan"), (changed(step=None), "not a complete plan"),
    (changed(rewrites=[3]), "not a complete plan"), (changed(format_version="1"), "plan format '1'"),
])
def test_what_is_no_plan_is_refused_in_one_line(raw: bytes, words: str):
    with pytest.raises(PlanMismatch) as caught:
        read_document(raw, "a.plan")
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith("a.plan: ") and caught.value.exit_code == 2


def test_a_module_that_grows_when_it_is_read_is_stopped(monkeypatch: pytest.MonkeyPatch):
    bomb = example(module="x" * 1_000_000).text().encode()
    monkeypatch.setattr(documents, "MOST_MODULE_BYTES", 1000)
    with pytest.raises(PlanMismatch, match="not a complete plan"):
        read_document(bomb, "a.plan")


def test_files_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert read_plan(str(tmp_path / "none.plan")) is None
    with pytest.raises(PlanMismatch, match="is a directory"):
        read_plan(str(tmp_path))
    with pytest.raises(PlanMismatch, match="not a regular file"):
        read_plan("/dev/zero")
    with pytest.raises(PlanMismatch, match="cannot be read"):
        read_plan(str(tmp_path / "a\0b"))
    from hlorewrite.lockfile import files
    monkeypatch.setattr(files, "MOST_PLAN_BYTES", 100)
    (tmp_path / "large.plan").write_bytes(b"x" * 101)
    with pytest.raises(PlanMismatch, match="larger than"):
        read_plan(str(tmp_path / "large.plan"))
    with pytest.raises(OutputError, match="would be larger"):
        write_plan(str(tmp_path / "large.plan"), example())
    assert (tmp_path / "large.plan").read_bytes() == b"x" * 101


def test_a_plan_that_cannot_be_written_leaves_the_old_one(tmp_path: Path):
    plans = PlanFiles(str(tmp_path / "file"))
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(PlanMismatch, match="cannot be read as a folder"):
        plans.place("step", "s", "m")
    with pytest.raises(OutputError):
        write_plan(str(tmp_path / "none" / "a.plan"), example())


def test_a_folder_holds_a_file_for_each_step_and_finds_the_one_of_a_changed_step(tmp_path: Path):
    first = PlanFiles(str(tmp_path / "plans"))
    for module in ("m1", "m2"):
        place = first.place("jit_step", "sig", module)
        assert place.read == place.write
        first.write(place, example())
    assert sorted(p.name for p in (tmp_path / "plans").iterdir()) == ["jit_step-sig-m1.plan", "jit_step-sig-m2.plan"]
    again = PlanFiles(str(tmp_path / "plans"))
    assert again.place("jit_step", "sig", "m1").read.endswith("m1.plan")
    moved = again.place("jit_step", "sig", "m3")
    assert moved.read.endswith("m2.plan") and moved.write.endswith("m3.plan")
    other = again.place("jit_step", "another", "m2")
    assert other.read == other.write
    assert again.place("../x", "sig", "m").read.startswith(str(tmp_path / "plans" / ".._x"))


def test_policies_are_checked():
    assert checked_files(None, "error") is None
    made = checked_files("a.plan", "replan")
    assert made is not None and not made.is_folder
    with pytest.raises(UsageError, match="did you mean"):
        checked_files("a.plan", "errors")
    with pytest.raises(UsageError, match="empty"):
        checked_files("", "error")


def test_differences_name_each_item_old_and_new():
    old = {"jaxlib": "0.10.1", "module": "a" * 64, "passes": "comm-shift," * 9 + "cse"}
    new = {"jaxlib": "0.10.2", "module": "b" * 64, "passes": "comm-shift," * 9 + "inline", "topology": "h200:1x8"}
    assert differences(old, new) == [
        "jaxlib 0.10.1 -> 0.10.2", f"module {'a' * 12} -> {'b' * 12}", "passes ...,cse -> ...,inline",
        "topology (none) -> h200:1x8"]
    assert differences(old, dict(old)) == []


def test_locations_keep_no_folders():
    text = 'loc("/a/b c/train.py":1:2 to :3:4) loc("jit(f)/mul"("x/y.py":5:6)) {note = "/a/b"}'
    assert without_folders(text) == 'loc("train.py":1:2 to :3:4) loc("jit(f)/mul"("y.py":5:6)) {note = "/a/b"}'

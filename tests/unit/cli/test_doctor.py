"""``hlorewrite doctor``: what it finds, what it says to do, and its exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hlorewrite.cli import doctor
from hlorewrite.cli.doctor import Diagnosis
from hlorewrite.cli.main import guarded


def _texts(found: list[Diagnosis]) -> dict[str, Diagnosis]:
    return {each.name: each for each in found}


def test_this_environment_works(capsys: pytest.CaptureFixture[str]):
    assert guarded(["doctor", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["ok"] and {each["topic"] for each in made["findings"]} == {
        "python", "packages", "extras", "settings", "self-test"}
    done = [each for each in made["findings"] if each["topic"] == "self-test"]
    assert [each["state"] for each in done[:4]] == ["ok"] * 4, done
    assert "running on CPU devices" in made["summary"]


def test_the_last_line_says_what_works(capsys: pytest.CaptureFixture[str]):
    assert guarded(["doctor", "--no-self-test"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("works here: nothing was tested")


@pytest.mark.parametrize(("versions", "name", "state", "text", "fix"), [
    ({}, "jax", "wrong", "not installed", "pip install hlorewrite"),
    ({"jax": "0.9.1", "jaxlib": "0.9.1"}, "jax", "wrong", "older than hlorewrite is tested with",
     "pip install 'jax>=0.10.2'"),
    ({"jax": "0.99.0", "jaxlib": "0.99.0"}, "jaxlib", "note", "newer than hlorewrite is tested with",
     "see docs/versions.md"),
    ({"jax": "0.12.0", "jaxlib": "0.11.1"}, "jax and jaxlib", "wrong", "jax is 0.12.0, and jaxlib is 0.11.1",
     "pip install jaxlib==0.12.0"),
    ({"jax": "0.12.0", "jaxlib": "0.12.0", "jax-cuda13-pjrt": "0.11.1"}, "jax-cuda13-pjrt", "wrong",
     "not the release of jaxlib", "pip install jax-cuda13-pjrt==0.12.0")])
def test_versions_that_do_not_fit_are_named(versions: dict[str, str], name: str, state: str, text: str, fix: str,
                                            monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "installed", lambda package: versions.get(package, ""))
    found = _texts(doctor.python_and_packages())[name]
    assert (found.state, found.fix) == (state, fix) and text in found.text


def test_a_missing_extra_says_what_it_gives_and_the_pip_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "installed", lambda package: "" if package == "z3-solver" else "1.0")
    found = _texts(doctor.extras())
    assert found["prove"] == Diagnosis("extras", "prove", "missing", "proving rules and facts: z3-solver not installed",
                                     "pip install 'hlorewrite[prove]'")
    assert found["viz"].state == "ok"


def test_a_checkout_that_was_never_installed_reads_its_project_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda package: None)
    assert doctor._packages_of_extras()["prove"] == ["z3-solver"]


def test_settings_that_switch_something_off_are_marked_and_secrets_are_not_shown():
    found = _texts(doctor.settings({"HLOREWRITE": "0", "JAX_DISABLE_JIT": "1", "JAX_LOG_COMPILES": "1",
                                      "HLOREWRITE_TOKEN": "abc", "XLA_FLAGS": "--a=1 --b", "JAX_PLATFORMS": ""}))
    assert found["HLOREWRITE"].fix == "unset HLOREWRITE" and found["JAX_DISABLE_JIT"].state == "note"
    assert found["JAX_LOG_COMPILES"].text == "1: a setting of JAX" and found["XLA_FLAGS"].text.endswith(
        "2 of XLA's flags, for every compilation")
    assert "abc" not in found["HLOREWRITE_TOKEN"].text and "JAX_PLATFORMS" in found["not set"].text
    assert doctor.settings({"XLA_FLAGS": "--a=1 'b"})[0].state == "note"
    assert doctor.settings({"HLOREWRITE": "1"})[0].state == "ok"


CRASH = """import sys
print('{"step": "devices"}\\n{"step": "devices", "done": "2 x cpu", "seconds": 1}\\n{"step": "run"}', flush=True)
sys.exit("F1127 07:34:49.286488   19662 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --bogus")
"""


def test_a_crash_is_the_fault_of_the_step_that_it_stopped(tmp_path: Path):
    (tmp_path / "crash.py").write_text(CRASH)
    found = _texts(doctor.self_test(False, (sys.executable, str(tmp_path / "crash.py"))))
    assert found["devices"].state == "ok"
    assert found["run on CPU devices"] == Diagnosis(
        "self-test", "run on CPU devices", "wrong",
        "the process ended with exit code 1 (Unknown flag in XLA_FLAGS: --bogus)", "correct XLA_FLAGS")
    assert found["compile for a described GPU"].fix == "pip install 'hlorewrite[aot]'"


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "hang.py").write_text("import time; print('{\"step\": \"devices\"}', flush=True); time.sleep(60)")
    monkeypatch.setattr(doctor, "MOST_SECONDS", 2.0)
    [first, _] = doctor.self_test(False, (sys.executable, str(tmp_path / "hang.py")))
    assert (first.state, first.text) == ("wrong", "no answer within 2 s") and "JAX_PLATFORMS=cpu" in first.fix


def test_a_fault_is_exit_code_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(doctor, "installed", lambda package: "")
    assert guarded(["doctor"]) == 1
    assert "does not work: jax (pip install hlorewrite)" in capsys.readouterr().out.splitlines()[-1]
    assert doctor.summary([]) == "works here: nothing was tested"

"""The driver over several real processes: values, and what happens when one of them is gone."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from warm_process import warm_python

from hlorewrite.jaxbridge.processes.activity import COMPILING, Phase
from hlorewrite.jaxbridge.processes.heartbeat import Heartbeat, identity
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.pipelines.runtime.compile_once import Hold, InFlight, pool_threads

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parents[2]
LONGEST_S = 90.0


class ProcessOutcome:
    """Exit code, output and lines of errors of one process."""

    def __init__(self, code: int | None, out: str, err: str) -> None:
        self.code, self.out = code, out
        self.said = [line for line in err.splitlines() if line.startswith("hlorewrite: error:")]
        self.err = err


def run(tmp_path: Path, processes: int, devices: int, start: tuple[int, ...] | None = None,
        **work: Any) -> list[ProcessOutcome]:
    """Starts processes on this machine and waits for all; none is left."""
    file = tmp_path / "work.json"
    defaults = {"coordinator": f"localhost:{free_port()}", "processes": processes, "timeout_s": 60.0, "wrong": "",
                "program": "two_stages", "schedule": "1f1b", "steps": 5, "who": -1}
    file.write_text(json.dumps(defaults | work))
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
                   "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    started = {process: subprocess.Popen([warm_python(), str(HERE / "pipeline_worker.py"), str(file), str(process)],
                                         env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for process in (range(processes) if start is None else start)}
    try:
        end = time.monotonic() + LONGEST_S
        outcomes = []
        for number, each in started.items():
            if number == (work.get("leave") if start is None else None):
                continue  # it never ends by itself
            out, err = each.communicate(timeout=max(end - time.monotonic(), 0.1))
            outcomes.append(ProcessOutcome(each.returncode, out, err))
        return outcomes
    finally:
        for each in started.values():
            if each.poll() is None:
                each.kill()
                each.wait()


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def check_values(outcomes: list[ProcessOutcome], kinds: list[str]) -> None:
    """Every process has the right values, and all know the loss."""
    losses = set()
    for outcome in outcomes:
        assert outcome.code == 0, outcome.err
        lines = outcome.out.splitlines()  # gloo writes among them
        printed = json.loads(next(line for line in lines if line.startswith("{")))
        assert printed["errors"] and max(printed["errors"]) < 1e-5
        assert printed["kinds"] == kinds
        assert "done" in lines
        losses.add(printed["loss"])
    assert len(losses) == 1


@pytest.mark.parametrize(("processes", "devices", "program", "schedule", "kinds"), [
    (2, 4, "two_stages", "eager-1f1b", ["permute"]),  # a process for each mesh
    (4, 2, "two_stages", "1f1b", ["permute"]),  # each mesh over two processes
    pytest.param(3, 3, "columns", "gpipe", ["plan"], marks=pytest.mark.slow),  # a process with devices of both
])
def test_processes_compute_the_step_of_one_device(tmp_path: Path, processes: int, devices: int, program: str,
                                                  schedule: str, kinds: list[str]):
    check_values(run(tmp_path, processes, devices, program=program, schedule=schedule), kinds)


@pytest.mark.parametrize(("wrong", "who", "sentence"), [
    ("killed", 1, "process 1 (stage 1) is gone: its process has ended"),
    ("killed", 0, "process 0 (stage 0), which holds the coordination service, is gone"),
    ("fails", 1, "process 1 (stage 1) failed: "),
    pytest.param("fails", 0, "process 0 (stage 0) failed: ", marks=pytest.mark.slow),
    ("raises", 0, "process 0 (stage 0) failed: ValueError: a bad batch"),
    pytest.param("leaves", 1, "process 1 (stage 1) has ended after step 11, and step", marks=pytest.mark.slow),
    pytest.param("absent", 1, "process 1 (stage 1) did not", marks=pytest.mark.slow),
])
def test_one_that_is_gone_ends_all_and_is_named(tmp_path: Path, wrong: str, who: int, sentence: str):
    outcomes = run(tmp_path, 2, 4, steps=100_000, timeout_s=12.0, wrong=wrong, who=who)
    other = outcomes[1 - who]
    assert other.code == (-signal.SIGABRT if (wrong, who) == ("killed", 0) else 1), other.err  # by JAX
    assert len(other.said) == 1 and sentence in other.said[0], other.err
    assert other.err.rstrip().splitlines()[-1] == other.said[0]
    assert "Traceback" not in other.err
    if wrong == "fails":
        own = outcomes[who]
        assert own.code == 1 and "RESOURCE_EXHAUSTED" in own.said[0] and "Traceback" not in own.err


@pytest.mark.parametrize(("wrong", "named", "ended"), [
    ("stopped", r"process 1 \(stage 1\) has not been heard of for \d s: it has ended or stopped, or its host is gone",
     "process 1 (stage 1) has not been heard of for"),
    ("sleeps", r"process 1 \(stage 1\) is in its own Python code at pipeline_worker\.py:",
     "process 1 (stage 1) is in its own Python code at pipeline_worker.py:"),
], ids=["stopped", "sleeps"])
def test_one_that_holds_up_the_others_is_named_before_they_end(tmp_path: Path, wrong: str, named: str, ended: str):
    (outcome,) = run(tmp_path, 2, 4, steps=100_000, timeout_s=6.0, wrong=wrong, who=1, leave=1)
    notes = [line for line in outcome.err.splitlines() if line.startswith("hlorewrite: note:")]
    assert outcome.code == 1 and any(re.search(named, line) for line in notes), outcome.err
    assert len(outcome.said) == 1 and ended in outcome.said[0]


def test_one_that_was_never_started_is_named(tmp_path: Path):
    outcomes = run(tmp_path, 3, 3, start=(0, 2), timeout_s=3.0)
    for outcome in outcomes:
        assert outcome.code == 1
        assert "process 1 did not arrive within 3 s" in outcome.said[0]
        assert "Traceback" not in outcome.err


def test_processes_with_different_schedules_stop(tmp_path: Path):
    outcomes = run(tmp_path, 2, 4, timeout_s=20.0, wrong="other schedule", who=1)
    assert all(outcome.code == 1 for outcome in outcomes)
    assert any("process 1 (comparing): its module differs from that of process 0: its schedule is " in line
               for outcome in outcomes for line in outcome.said)


def test_hosts_of_an_emulated_cluster(tmp_path: Path):
    from emulated_cluster import EmulatedCluster, missing

    if reason := missing():
        pytest.skip(f"the emulated cluster {reason}")
    with EmulatedCluster(2, "200mbit") as cluster:
        file = tmp_path / "work.json"
        file.write_text(json.dumps({"coordinator": f"{cluster.addresses[0]}:17345", "processes": 2, "timeout_s": 60.0,
                                    "program": "columns", "schedule": "1f1b", "steps": 3, "wrong": "", "who": -1}))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
                       "HLOREWRITE_TOKEN": secrets.token_hex(), "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
        for host in range(2):
            cluster.start(host, [sys.executable, str(HERE / "pipeline_worker.py"), str(file), str(host)], environment,
                          tmp_path / f"log{host}")
        codes = cluster.wait(LONGEST_S)
    logs = [(tmp_path / f"log{host}").read_text() for host in range(2)]
    check_values([ProcessOutcome(code, text, text) for code, text in zip(codes, logs, strict=True)], ["plan"])


# ---- the watch alone


class Store:
    """A key-value store in this process."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """As the runtime's."""
        assert allow_overwrite or key not in self.kept
        self.kept[key] = value

    def key_value_dir_get(self, prefix: str) -> list[tuple[str, str]]:
        """As the runtime's."""
        return [(key, value) for key, value in self.kept.items() if key.startswith(prefix)]


def watch(store: Store, timeout_s: float = 0.4) -> Watch:
    """The watch of process 0 of two, its thread not started."""
    return Watch("room", {0: "stage 0", 1: "stage 1"}, 0, store, timeout_s, end=lambda sentence: None)


def verdict(mine: Watch) -> str:
    """What a watch says after it has read the store."""
    mine.refresh()
    return mine.verdict()


def test_a_beat_keeps_a_process_alive_and_silence_does_not():
    store = Store()
    mine = watch(store)
    for count in range(5):
        store.kept["room/beat/1"] = str(count)
        assert verdict(mine) == ""
        time.sleep(0.1)
    for _ in range(5):
        verdict(mine)
        time.sleep(0.1)
    assert verdict(mine).startswith("process 1 (stage 1) has not been heard of")


def test_leaving_is_no_failure_unless_a_step_is_missing():
    store = Store()
    mine = watch(store)
    mine.begun = 3
    store.kept |= {"room/beat/1": "7", "room/left/1": "3"}
    assert verdict(mine) == ""
    mine.begun = 4
    assert "has ended after step 3, and step 4 needs it" in verdict(mine)


def test_failures_and_ends_are_passed_on():
    store = Store()
    store.kept |= {"room/beat/1": "7", "room/failed/1": "no memory"}
    assert verdict(watch(store)) == "process 1 (stage 1) failed: no memory"
    store.kept = {"room/beat/1": "8", "room/ended/1": "process 2 is gone"}
    assert verdict(watch(store)) == "process 2 is gone"


def test_process_0_outlives_those_that_are_leaving():
    """JAX aborts them when the store is gone: process 0 lets them run what they registered, for ten seconds."""
    store, now = Store(), time.monotonic()
    mine = watch(store)
    needs = [Heartbeat(1, who, Phase(COMPILING)).to_text() for who in ("", "no machine/1/1", identity())]
    for beat in needs:
        store.kept = {"room/beat/1": beat}
        mine.refresh()
        assert mine._needs_store(1, now)
        store.kept["room/left/1"] = "3"
        mine.refresh()
        assert mine._needs_store(1, now + 9.0)
        assert not mine._needs_store(1, now + 60.0)
        mine._left_at.clear()
    gone = identity().rpartition("/")[0] + "/1"  # another process had this number before
    store.kept = {"room/beat/1": Heartbeat(2, gone, Phase(COMPILING)).to_text(), "room/left/1": "3"}
    mine.refresh()
    assert not mine._needs_store(1, now)
    store.kept = {"room/beat/1": needs[0], "room/ended/1": "process 2 is gone"}
    mine.refresh()
    assert not mine._needs_store(1, now)


class SilentStore(Store):
    """A store of a stopped process: calls do not return until it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """As the runtime's."""
        self.goes_on.wait()

    def key_value_dir_get(self, prefix: str) -> list[tuple[str, str]]:
        """As the runtime's."""
        self.goes_on.wait()
        return []


def test_a_store_that_does_not_answer_names_process_0_and_no_other():
    """Process 0 is stopped: its connections stay open, and calls of the store block."""
    notes: list[str] = []
    ends: list[str] = []
    store = SilentStore()
    mine = Watch("room", {0: "stage 0", 1: "stage 1", 2: "stage 2"}, 1, store, 2.0, end=ends.append, note=notes.append)
    began = time.monotonic()
    mine._beats = {0: (Heartbeat(1, "", Phase(COMPILING)).to_text(), began), 2: ("1", began)}
    for thread in mine._threads:
        thread.start()
    try:
        # Ends: when the process is to end, or at the deadline.
        while not ends and time.monotonic() < began + 20:
            time.sleep(0.05)
        silent = "process 0 (stage 0), which holds the key-value store, does not answer for"
        assert [note for note in notes if note.startswith(silent) and note.endswith("it was last seen compiling")]
        assert not [note for note in notes if "process 2" in note]
        assert ends and ends[0].startswith(silent)
    finally:
        mine._stopped.set()
        store.goes_on.set()


def test_after_process_0_went_on_the_others_are_not_silent():
    """They could not beat either while the store did not answer."""
    store = Store()
    mine = Watch("room", {0: "", 1: "", 2: ""}, 1, store, 2.0, end=lambda sentence: None)
    store.kept |= {"room/beat/0": "1", "room/beat/2": "1"}
    assert verdict(mine) == ""
    time.sleep(2.5)
    assert verdict(mine) == ""


def test_programs_in_flight_leave_a_thread_for_what_they_wait_for():
    class Ready:
        def block_until_ready(self) -> None:
            """It has run."""

        def is_ready(self) -> bool:
            """It has run."""
            return True

    for threads, first, second, fits in ((8, Hold(4), Hold(4), True), (7, Hold(4), Hold(4), False),
                                         (8, Hold(4, True), Hold(4), False), (9, Hold(4, True), Hold(4), True)):
        flight = InFlight(threads)
        flight.add(Ready(), first)  # pyright: ignore
        assert flight.fits(second) is fits
    flight = InFlight(2)
    flight.add(Ready(), Hold(2))  # pyright: ignore
    flight.wait_for_room(Hold(4, True))  # more than there are: alone
    assert not flight._held
    assert pool_threads({"PJRT_NPROC": "48"}, 4) == 48
    assert pool_threads({}, 1000) == 1000

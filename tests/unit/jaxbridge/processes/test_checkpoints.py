"""Four processes: values of results on all or one of them, and a state that orbax saves, restores and goes on with."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warm_process import warm_python

HERE = Path(__file__).resolve().parent.parent
PROCESSES, STEPS, LONGEST_S = 4, 4, 150.0


def run(tmp_path: Path, **work: Any) -> list[tuple[int, list[dict[str, float]], str]]:
    """Exit code, printed values and errors of each process."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    defaults = {"coordinator": f"localhost:{port}", "processes": PROCESSES, "timeout_s": 60.0, "steps": STEPS,
                "save_after": 0, "restore": False, "checkpoints": "", "who": -1, "stages": 4, "by_global": False}
    file = tmp_path / "work.json"
    file.write_text(json.dumps(defaults | work))
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
                   "XLA_FLAGS": "--xla_force_host_platform_device_count=1 --xla_backend_optimization_level=0"}
    started = [subprocess.Popen([warm_python(), str(HERE / "checkpoint_worker.py"), str(file), str(process)],
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for process in range(PROCESSES)]
    try:
        outcomes = []
        for each in started:
            out, err = each.communicate(timeout=LONGEST_S)
            values = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            outcomes.append((each.returncode, values, err))
        return outcomes
    finally:
        for each in started:
            if each.poll() is None:
                each.kill()
                each.wait()


def test_every_process_fetches_the_loss_and_one_a_parameter(tmp_path: Path):
    outcomes = run(tmp_path, steps=2)
    assert [code for code, _, _ in outcomes] == [0] * PROCESSES, [err for _, _, err in outcomes]
    first = outcomes[0][1]
    assert len(first) == 3 and first[0]["loss"] > first[1]["loss"] and first[2]["count"] == 2
    assert all(values == first for _, values, _ in outcomes)


def test_unequal_stages_and_a_state_that_goes_through_global_arrays(tmp_path: Path):
    equal, unequal = run(tmp_path, steps=2), run(tmp_path, steps=2, stages=[1, 4, 6], by_global=True)
    assert [code for code, _, _ in unequal] == [0] * PROCESSES, [err for _, _, err in unequal]
    for (_, expected, _), (_, values, _) in zip(equal, unequal, strict=True):
        for want, got in zip(expected, values, strict=True):
            assert got == pytest.approx(want, rel=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("orbax") is None, reason="orbax-checkpoint is not installed")
def test_saved_killed_restored_and_continued(tmp_path: Path):
    kept = str(tmp_path / "checkpoint")
    whole = run(tmp_path)
    killed = run(tmp_path, checkpoints=kept, save_after=2, who=2)
    continued = run(tmp_path, checkpoints=kept, restore=True, steps=STEPS - 2)
    assert [code for code, _, _ in whole] == [0] * PROCESSES
    assert killed[2][0] == -9
    assert all("process 2 (stage 2) is gone" in err for process, (_, _, err) in enumerate(killed) if process != 2)
    assert [code for code, _, _ in continued] == [0] * PROCESSES, [err for _, _, err in continued]
    for process in range(PROCESSES):
        assert killed[process][1] == whole[process][1][:2]
        assert continued[process][1] == whole[process][1][2:]  # bit for bit

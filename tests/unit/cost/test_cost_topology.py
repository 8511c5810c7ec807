"""Topologies: shipped files, sizes, and errors that name key and line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hlorewrite.cost import load_topology, topology, topology_names
from hlorewrite.errors import InputError, UsageError

NAMED = ["h100", "h200", "b200", "a100", "v100", "rtx3090", "p3.8xlarge", "tsubame4", "superpod-h100", "selene-a100",
         "aws-p5"]


@pytest.mark.parametrize("name", sorted({*NAMED, *topology_names()}))
def test_shipped_topology_loads_and_states_a_source(name: str) -> None:
    cluster = topology(name)
    assert cluster.gpus == cluster.server_gpus
    assert cluster.peak_flops and cluster.intra_sustained_bytes_per_s < cluster.intra_bytes_per_s
    text = (Path("hlorewrite/cost/data/topologies") / f"{name}.toml").read_text()
    assert text.startswith("# ")


def test_sizes_hosts_and_nics() -> None:
    cluster = topology("h200:4x8")
    assert (cluster.gpus, cluster.host_of(8), cluster.nic_of(17)) == (32, 1, 17)
    shared = topology("p3.8xlarge:2x4")
    assert [shared.nic_of(gpu) for gpu in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert shared.nic_bytes_per_s == 10e9 / 8
    assert topology("h200:2x4").nic_of(7) == 11  # half a server keeps the whole server's NIC numbers


@pytest.mark.parametrize(("spec", "says"), [
    ("h20:1x8", 'did you mean "h200"'), ("h200:8", "HOSTSxGPUS"), ("h200:0x8", "at least 1"),
    ("h200:1x9", "8 GPUs each"), ("h200:-1x8", "HOSTSxGPUS"), ("h200:1x8x2", "HOSTSxGPUS"),
])
def test_impossible_specs_are_refused(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        topology(spec)


def test_gpu_outside_the_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match="GPU 8 is not one of the 8"):
        topology("h200:1x8").host_of(8)


BASE = 'extends = "h200"\nname = "mine"\n'


@pytest.mark.parametrize(("text", "line", "says"), [
    (BASE + "\n[network]\nnic_bytes_per_s = -4\n", 5, "nic_bytes_per_s"),
    (BASE + "\n[network]\nnic_bytes_per_sec = 4\n", 5, 'did you mean "nic_bytes_per_s"'),
    (BASE + "\n[netwrk]\nkind = 'tcp'\n", 5, 'did you mean "network"'),
    (BASE + "\n[link]\nnvls = 1\n", 5, "true or false"),
    (BASE + "\n[link]\nefficiency = 1.5\n", 5, "above 1"),
    (BASE + "gpus_per_host = 2.5\n", 3, "whole number"),
    (BASE + "[gpu]\narchitecture = 'hoper'\n", 4, 'did you mean "hopper"'),
    (BASE + "[gpu.peak_flops]\nbf17 = 1e12\n", 4, 'did you mean "bf16"'),
    (BASE + "[collectives]\nlaunch = 1e-6\n", 4, 'did you mean "launch_s"'),
    (BASE + "[curves]\nall-reduce-8 = [[1, 1], [2, 2]]\n", 4, "KIND-HOSTSxRANKS"),
    (BASE + "[curves]\nall-reduce-1x8 = [[2, 1], [1, 2]]\n", 4, "not sorted"),
    (BASE + "[curves]\nall-reduce-1x8 = [[2, 1]]\n", 4, "two points"),
    ('extends = "h2000"\nname = "mine"\n', 1, "no shipped topology"),
    ("name = \n", 1, "not TOML"),
])
def test_malformed_file_names_key_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_topology(file)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{file}:{line}")


def test_missing_key_and_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ngpus_per_host = 8\n')
    with pytest.raises(InputError, match="is missing"):
        load_topology(file)
    with pytest.raises(InputError, match="cannot read"):
        load_topology(tmp_path / "none.toml")


def test_user_file_extends_and_is_sized(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(BASE + "[network]\nkind = 'roce'\n")
    cluster = topology(f"{file}:2x8")
    assert (cluster.name, cluster.inter_kind, cluster.gpus) == ("mine", "roce", 16)


def test_import_stays_light() -> None:
    heavy = "('numpy', 'scipy', 'matplotlib', 'jaxlib')"
    code = f"import sys, hlorewrite.cost; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

"""A cluster on one machine: network namespaces joined by a bridge, each with a rate-limited NIC.

Needs root and iproute2 (``apt-get install iproute2``). Every host has a name of its own and a hosts file that
resolves all of them, as gloo asks for host names. Both ends of each cable get a token bucket: one limits what the
host sends, the other what it receives.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_PREFIX = "hlr"
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def missing() -> str | None:
    """Why no cluster can be emulated here, and what to do; None when it can."""
    tools = [tool for tool in ("ip", "tc", "unshare") if shutil.which(tool) is None]
    if tools:
        return f"needs {', '.join(tools)}; install them with: apt-get install iproute2 util-linux"
    if os.geteuid() != 0:
        return "needs root to make network namespaces; run it with sudo"
    probe = subprocess.run(["ip", "netns", "add", f"{_PREFIX}probe"], capture_output=True, text=True, check=False)
    if probe.returncode:
        return f"cannot make a network namespace ({probe.stderr.strip()}); run it where CAP_SYS_ADMIN is granted"
    subprocess.run(["ip", "netns", "del", f"{_PREFIX}probe"], check=False)
    return None


def bytes_per_s(rate: str) -> float:
    """The rate that ``tc`` writes as ``200mbit``."""
    match = re.fullmatch(r"([\d.]+)([kmg]bit)", rate)
    if not match:
        raise SystemExit(f'"{rate}" is not a rate; write it as "200mbit"')
    return float(match[1]) * _UNITS[match[2]] / 8


def topology_file(folder: Path, rate: str) -> Path:
    """The emulated cluster as a topology: its NICs, and loopback connections between devices of a host."""
    path = folder / "emulated.toml"
    path.write_text(f'extends = "p3.8xlarge"\nname = "emulated"\n[network]\nkind = "tcp"\nnics_per_host = 1\n'
                    f"nic_bytes_per_s = {bytes_per_s(rate)}\nefficiency = 1.0\nlatency_s = 100e-6\n"
                    "[link]\nbytes_per_s = 400e6\nefficiency = 1.0\n")
    return path


class EmulatedCluster:
    """Hosts as network namespaces; use as a context manager, which removes everything again.

    Args:
      hosts: number of hosts.
      rate: rate of each host's NIC per direction, as ``tc`` writes it: ``200mbit``.
    """

    def __init__(self, hosts: int, rate: str) -> None:
        tag = f"{_PREFIX}{os.getpid() % 10000}"
        self.names = [f"{tag}h{i}" for i in range(hosts)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(hosts)]
        self.rate = rate
        self._bridge = f"{tag}b"
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> EmulatedCluster:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._remove()

    def start(self, host: int, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        """Starts a process on a host."""
        script = f"hostname {self.names[host]}; exec \"$@\""
        full = ["ip", "netns", "exec", self.names[host], "unshare", "-u", "sh", "-c", script, "sh", *command]
        with log.open("wb") as out:
            self._started.append(subprocess.Popen(full, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                                  start_new_session=True))

    def wait(self, timeout_s: float) -> list[int | None]:
        """Waits for all processes; returns their exit codes, None for those that were still running.

        When one fails, the others get ten seconds, as they may wait for it.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            codes = [process.poll() for process in self._started]
            if None not in codes:
                break
            if any(codes) and end > time.monotonic() + 10:
                end = time.monotonic() + 10
            time.sleep(0.1)
        return [process.poll() for process in self._started]

    def _build(self) -> None:
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "link", "set", self._bridge, "up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for a, n in zip(self.addresses, self.names, strict=True))
        for name, address in zip(self.names, self.addresses, strict=True):
            folder = Path("/etc/netns") / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "hosts").write_text(hosts)
            _run("ip", "netns", "add", name)
            _run("ip", "link", "add", f"{name}o", "type", "veth", "peer", "name", "nic", "netns", name)
            _run("ip", "link", "set", f"{name}o", "mtu", "9000", "master", self._bridge, "up")
            inside = ("ip", "netns", "exec", name)
            _run(*inside, "ip", "address", "add", f"{address}/24", "dev", "nic")
            _run(*inside, "ip", "link", "set", "nic", "mtu", "9000", "up")
            _run(*inside, "ip", "link", "set", "lo", "up")
            bucket = ("root", "tbf", "rate", self.rate, "burst", "128kb", "latency", "100ms")
            _run(*inside, "tc", "qdisc", "add", "dev", "nic", *bucket)
            _run("tc", "qdisc", "add", "dev", f"{name}o", *bucket)

    def _remove(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for name in self.names:
            subprocess.run(["ip", "link", "del", f"{name}o"], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")

"""The roll call: its address, its token, connections that say nothing; what a process is seen to do."""

from __future__ import annotations

import dis
import linecache
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, SimpleNamespace

import pytest

from hlorewrite.errors import PlanError, UsageError
from hlorewrite.jaxbridge.processes import join as joining
from hlorewrite.jaxbridge.processes.activity import COMPILING, OWN, WAITING, PhaseClock, called_object, phase_of
from hlorewrite.jaxbridge.processes.heartbeat import identity, is_gone
from hlorewrite.jaxbridge.processes.join import _answer, _RollCall, join


def free_port() -> int:
    """A port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def called(processes: int, timeout_s: float, host: str = "127.0.0.1", secret: bytes = b"x") -> SimpleNamespace:
    """A roll call in a thread; ``missing`` is its result."""
    made = SimpleNamespace(port=free_port(), missing=None)

    def run() -> None:
        made.missing = _RollCall(host, made.port, processes, timeout_s, secret).run()

    made.thread = threading.Thread(target=run)
    made.thread.start()
    return made


def test_silent_and_foreign_connections_hold_up_nobody() -> None:
    roll = called(3, 20.0)
    time.sleep(0.3)
    silent = [socket.create_connection(("127.0.0.1", roll.port)) for _ in range(5)]
    begin, answers = time.monotonic(), dict[int, str]()
    foreign = threading.Thread(target=_answer, args=("127.0.0.1", roll.port, 1, 1.0, b"guessed"))
    foreign.start()
    threads = [threading.Thread(target=lambda p=p: answers.update({p: _answer("127.0.0.1", roll.port, p, 20.0, b"x")}))
               for p in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in (*threads, roll.thread):
        thread.join()
    assert answers == {1: "", 2: ""} and roll.missing == "" and time.monotonic() - begin < 8
    foreign.join()
    for each in silent:
        each.close()


_OTHER_USER = """
import hashlib, hmac, os, socket, sys
os.setuid(65534)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    challenge = peer.makefile().readline().strip()
    proof = hmac.new(b"", f"{challenge} 1".encode(), hashlib.sha256).hexdigest()
    peer.sendall(f"1 {proof}\\n".encode())
    peer.settimeout(10)
    print(peer.recv(100))
"""


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="another user is made by root, on Linux")
def test_without_a_token_another_user_of_the_machine_does_not_answer_the_roll_call() -> None:
    """Anyone reaches a port of the loopback address, and without a token anyone can compute what it asks for."""
    roll = called(2, 8.0, secret=b"")
    time.sleep(0.3)
    other = subprocess.run([sys.executable, "-c", _OTHER_USER, str(roll.port)], capture_output=True, text=True,
                           check=False)
    assert "go" not in other.stdout and roll.missing is None
    assert _answer("127.0.0.1", roll.port, 1, 8.0, b"") == ""
    roll.thread.join()
    assert roll.missing == ""


@pytest.mark.skipif(sys.platform != "linux", reason="who has a connection is read from /proc")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_whose_a_connection_is(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with (socket.create_server((host, 0), family=family) as server,
          socket.create_connection((host, server.getsockname()[1])) as near, server.accept()[0] as far):
        assert not joining.is_of_others(far) and not joining.is_of_others(near)
        if os.getuid():
            assert joining.is_of_others(far, uid=os.getuid() + 1)


def test_the_port_is_free_after_the_roll_call() -> None:
    roll = called(2, 0.5)
    roll.thread.join()
    assert roll.missing == "1"
    with socket.create_server(("127.0.0.1", roll.port)):
        pass


def test_who_is_missing_is_named_before_the_end(capsys: pytest.CaptureFixture[str],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "NAMED_S", 0.5)
    roll = called(3, 3.0)
    assert _answer("127.0.0.1", roll.port, 1, 3.0, b"x") == "2"
    roll.thread.join()
    said = capsys.readouterr().err
    assert "hlorewrite: note: process 0 waits for 2, which has not arrived yet" in said
    assert "hlorewrite: note: process 1 waits for 2, which has not arrived yet" in said


def test_it_listens_on_the_given_address_only() -> None:
    roll = called(2, 2.0, "127.0.0.2")
    time.sleep(0.3)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", roll.port), 1.0)
    assert _answer("127.0.0.2", roll.port, 1, 2.0, b"x") == ""
    roll.thread.join()


def test_other_addresses_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HLOREWRITE_TOKEN", raising=False)
    with pytest.raises(UsageError, match="set HLOREWRITE_TOKEN to the same random text"):
        join("192.0.2.1:1234", 2, 0, 1.0)
    with pytest.raises(PlanError, match=r"process 0 cannot listen at 192\.0\.2\.1:"):
        join("192.0.2.1:1234", 2, 0, 1.0, token="secret")
    with pytest.raises(UsageError, match="is not an address"):
        join("localhost:99999", 2, 0)


# ---- what a process does


def test_phases_are_read_from_the_stack(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def user_code(inner: object) -> None:
        assert callable(inner)
        inner()

    def look() -> None:
        seen.append(phase_of(sys._getframe()))

    user_code(look)
    assert seen[0][0] == OWN and seen[0][1].startswith("test_join_and_activity.py:")
    import jax
    for name, kind in (("block_until_ready", WAITING), ("backend_compile_and_load", COMPILING), ("tree_map", OWN)):
        file = os.path.join(os.path.dirname(jax.__file__), "made_up.py")
        scope: dict[str, object] = {"look": look}
        exec(compile(f"def {name}():\n    look()\n", file, "exec"), scope)
        user_code(scope[name])
        assert seen[-1][0] == kind, name


def test_the_time_of_a_phase_begins_anew_with_a_step() -> None:
    clock = PhaseClock()
    clock.look(1)
    time.sleep(0.2)
    assert clock.look(1).since_s >= 0.15 and clock.look(2).since_s < 0.15


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
def test_a_process_that_ended_is_gone_and_one_of_another_machine_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "from hlorewrite.jaxbridge.processes.heartbeat import identity\n"
                              "print(identity(), flush=True)\ninput()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
    assert child.stdout is not None
    who = child.stdout.readline().strip()
    assert not is_gone(who) and not is_gone(identity())
    child.kill()
    time.sleep(0.3)
    assert is_gone(who)  # not yet waited for
    child.wait()
    assert is_gone(who) and not is_gone(f"elsewhere/{who.split('/', 1)[1]}") and not is_gone("")


def test_a_call_of_compiled_code_is_a_wait_and_other_calls_are_not() -> None:
    """C++ leaves no frame, so the callee is read from the source of the calling line."""
    import jax

    class HoldsJitted:
        step = jax.jit(lambda x: x)

        def __init__(self) -> None:
            self.other = jax.jit(lambda x: x + 1)

    def calls(trainer: HoldsJitted, look: Callable[[], object], jitted: object) -> list[object]:
        return [
            look(),
            look(), (jitted, look())[1]]

    seen: list[tuple[object, str]] = []

    def look() -> None:
        frame = sys._getframe(1)
        seen.append((called_object(frame), phase_of(frame)[0]))
    calls(HoldsJitted(), look, jax.jit(abs))
    assert seen == [(look, OWN)] * 3
    for text, waits in (("trainer.step(1)", True), ("trainer.other(1)", True), ("f(1)", True), ("abs(1)", False),
                        ("fs[0](1)", False), ("1 + f(\n  1)", True)):
        assert (stopped_in(text, {"trainer": HoldsJitted(), "f": jax.jit(lambda x: x), "fs": [jax.jit(abs)]}) == WAITING
                ) is waits, text


def stopped_in(text: str, scope: dict[str, object]) -> str:
    """The phase of a frame that is in the middle of the last call of an expression."""
    name = f"<made up {text}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    code = compile(text, name, "eval")
    frame = SimpleNamespace(f_code=code, f_lasti=last_call(code), f_locals=scope, f_globals={}, f_lineno=1, f_back=None)
    return phase_of(frame)[0]  # pyright: ignore[reportArgumentType]


def last_call(code: CodeType) -> int:
    """Where the last call of some code stands."""
    return max(each.offset for each in dis.get_instructions(code) if each.opname.startswith("CALL"))

"""Starts Python programs without their start-up costs: each is forked from a process that has imported the libraries.

Tests and pages start hundreds of short commands, and most of their time is the import of jax and of MLIR. A
``WarmServer`` imports them once and forks for each command; ``warm_client.py`` stands for the command's process. To the
program everything is as in a process of its own: working directory, environment, standard streams, ``sys.path``,
``__main__``, exit code and signals. Three things differ. The libraries named to the server are imported already; all
programs of a server share one seed of string hashes; and ``sys.executable`` names a script that starts a warm process
again. A command whose environment would change how the libraries are imported gets an ordinary process.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import importlib
import marshal
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

CLIENT = Path(__file__).with_name("warm_client.py")
CONSOLE_SCRIPTS = {"hlorewrite": "hlorewrite.cli.main:entry", "filecheck": "filecheck.main:main"}
"""Programs besides ``python``, and what they call."""
READ_BY_IMPORTS = ("PYTHON", "JAX_", "JAXLIB_", "XLA_", "TF_", "GLOG_", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "CUDA_",
                   "NVIDIA_", "LIBTPU_", "TPU_")
"""How variables begin that interpreter and libraries read when they start."""
_HANDLED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "XLA_FLAGS")
"""Variables that a forked process can still follow; XLA reads its flags when it first compiles."""


class WarmServer:
    """Starts the server on entry, ends it on exit.

    Args:
      environment: the variables that the libraries are imported under.
      preload: modules to import; not what a program's own ``PYTHONPATH`` should have found instead. Functions to call
        after that stand as ``module:function``.

    Attributes:
      folder: holds a script for each program: ``python``, ``python3``, ``hlorewrite``, ``filecheck``.
    """

    def __init__(self, environment: Mapping[str, str], preload: Sequence[str] = ("jax", "jax.export")) -> None:
        self._environment = dict(environment)
        self._preload = list(preload)

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="warm"))
        address = self.folder / "s"
        for program in ("python", "python3", *CONSOLE_SCRIPTS):
            script = self.folder / program
            script.write_text(f'#!/bin/sh\nexec {shlex.join(self.command(program))} "$@"\n')
            script.chmod(0o755)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listener:
            listener.bind(str(address))
            listener.listen(64)
            python = Path(sys.prefix) / "bin" / "python3"  # sys.executable names a script in a warm process
            command = [str(python if python.exists() else sys.executable), __file__, str(listener.fileno()),
                       str(self.folder), *self._preload]
            self._process = subprocess.Popen(command, env=self._environment, stdin=subprocess.PIPE,
                                             stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()])
        return self

    def command(self, program: str) -> list[str]:
        """The words that start a program, without going through its script."""
        base = getattr(sys, "_base_executable", sys.executable)
        return [base, "-I", "-S", str(CLIENT), str(self.folder / "s"), program]

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def warm_python() -> str:
    """A ``python`` for tests that start programs of jax on CPU devices; its server ends with this process."""
    left_out = ("XLA_FLAGS", "PYTHONPATH", "HLOREWRITE")
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    server = WarmServer(dict(variables, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3"))
    server.__enter__()
    atexit.register(server.__exit__)
    return str(server.folder / "python")


class _Job(Exception):
    """In the forked process: what it is to run. An exception, so that the server's frames are gone when it runs."""

    def __init__(self, words: list[str], folder: str, environment: dict[str, str]) -> None:
        super().__init__()
        self.words, self.folder, self.environment = words, folder, environment


def _start(listener: socket.socket, clients: dict[int, socket.socket], selector: selectors.BaseSelector,
           waking: tuple[int, int]) -> None:
    """Forks for the request of a client, and adds it to the clients; the forked process raises its job."""
    client = listener.accept()[0]
    try:
        request, streams = _received(client)
    except (OSError, EOFError):
        client.close()
        return
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for at, stream in enumerate(streams):
            os.dup2(stream, at)
        for open_file in (selector, listener, client, *clients.values()):
            open_file.close()
        for number in (*streams, *waking):
            os.close(number)
        raise _Job(*request)
    for stream in streams:
        os.close(stream)
    clients[child] = client
    selector.register(client, selectors.EVENT_READ, child)


def _serve(listener: socket.socket) -> None:
    """Forks for each request until standard input ends."""
    selector = selectors.DefaultSelector()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for each in (0, woken, listener):
        selector.register(each, selectors.EVENT_READ)
    clients: dict[int, socket.socket] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                for child in clients:
                    os.kill(child, signal.SIGKILL)
                return
            if key.fileobj == woken:
                os.read(woken, 4096)
            elif key.fileobj is listener:
                _start(listener, clients, selector, (woken, wake))
            else:  # the client is gone: killed, for example by a time limit
                selector.unregister(key.fileobj)
                os.kill(key.data, signal.SIGKILL)
        for child, client in list(clients.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del clients[child]
                if client in selector.get_map():
                    selector.unregister(client)
                with contextlib.suppress(OSError):
                    client.sendall(status.to_bytes(4, "big"))
                client.close()


def _received(client: socket.socket) -> tuple[tuple[list[str], str, dict[bytes, bytes]], list[int]]:
    streams = array.array("i")
    size, ancillary, _, _ = client.recvmsg(4, socket.CMSG_LEN(3 * streams.itemsize))
    for _, _, data in ancillary:
        streams.frombytes(data)
    request = b""
    while len(request) < int.from_bytes(size, "big"):
        more = client.recv(1 << 20)
        if not more:
            raise EOFError
        request += more
    return marshal.loads(request), list(streams)


def _needs_own_process(environment: Mapping[str, str], imported_under: Mapping[str, str]) -> bool:
    """Whether a variable differs that the libraries read when they were imported."""
    return any(imported_under.get(name) != environment.get(name) for name in {*imported_under, *environment}
               if name.startswith(READ_BY_IMPORTS) and name not in _HANDLED)


def _become(job: _Job, folder: str, base_path: list[str], imported_under: Mapping[str, str]) -> types.CodeType | None:
    """Makes this process the program's.

    Args:
      job: what to run.
      folder: the scripts' folder.
      base_path: ``sys.path`` without the script's folder and ``PYTHONPATH``.
      imported_under: the environment before the libraries were imported.

    Returns:
      The code to execute in ``__main__``.
    """
    program, arguments = job.words[0], job.words[1:]
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in job.environment.items()}
    os.chdir(job.folder)
    script = program not in CONSOLE_SCRIPTS and bool(arguments) and Path(arguments[0]).is_file()
    known = program in CONSOLE_SCRIPTS or script or (len(arguments) > 1 and arguments[0] in ("-c", "-m"))
    if not known or _needs_own_process(environment, imported_under):
        real = sys.executable if program.startswith("python") else str(Path(sys.executable).with_name(program))
        os.execve(real, [real, *arguments], environment)
    os.environ.clear()
    os.environ.update(environment)
    for at, stream in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, stream)
        new = os.fdopen(at, "w" if at else "r", 1 if at == 2 or os.isatty(at) else -1, encoding=old.encoding,
                        errors=old.errors, closefd=False)
        setattr(sys, stream, new)
        setattr(sys, f"__{stream}__", new)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.executable = f"{folder}/python"
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if program in CONSOLE_SCRIPTS:
        module, _, function = CONSOLE_SCRIPTS[program].partition(":")
        first, sys.argv = str(Path(sys.prefix) / "bin"), [program, *arguments]
        code = f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n"
        name = f"{first}/{program}"
    elif not script:
        first, sys.argv = job.folder, arguments[1:]
        code, name = f"import runpy\nrunpy._run_module_as_main({arguments[1]!r})\n", "-m"
        if arguments[0] == "-c":
            first, sys.argv = "", ["-c", *arguments[2:]]
            code, name = arguments[1], "<string>"
    else:
        name = arguments[0]
        first, sys.argv = str(Path(name).resolve().parent), arguments
        code = Path(name).read_bytes()
        main.__dict__.update(__file__=name, __cached__=None)
    sys.modules["__main__"] = main
    importlib.invalidate_caches()
    sys.path[:] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *base_path]
    return compile(code, name, "exec", dont_inherit=True)


def _told(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    """Prints a traceback without this file's own frame."""
    sys.__excepthook__(kind, error.with_traceback(trace and trace.tb_next), trace and trace.tb_next)


if __name__ == "__main__":
    _listener, _folder = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    _own = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    _base = [entry for entry in sys.path[1:] if Path(entry).resolve() not in _own]
    _environment = dict(os.environ)
    for _name in sys.argv[3:]:
        _module, _, _function = _name.partition(":")
        _imported = importlib.import_module(_module)
        if _function:
            getattr(_imported, _function)()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # programs are short
    _work = None
    try:
        _serve(_listener)
    except _Job as _job:
        _work = _become(_job, _folder, _base, _environment)
    if _work:
        sys.excepthook = _told
        exec(_work, sys.modules["__main__"].__dict__)

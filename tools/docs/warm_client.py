"""``python -I -S warm_client.py SOCKET PROGRAM [ARGUMENT...]``: has a ``WarmServer`` run a program as this process.

Passes the standard streams, the working directory and the environment, waits, and ends as the program ended: with
its exit code, or of its signal. Imports only what is built into the interpreter, because it is started for every
command.
"""

import _socket
import marshal
import posix
import sys


def main() -> None:
    """Runs the client."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], posix.getcwd(), dict(posix.environ)))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    server.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    server.sendall(request)
    answer = server.recv(4)
    if len(answer) < 4:
        posix.write(2, b"the process that starts programs is gone\n")
        posix._exit(125)
    status = int.from_bytes(answer, "big")
    if posix.WIFSIGNALED(status):
        import signal
        number = posix.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
    posix._exit(posix.WEXITSTATUS(status))


main()

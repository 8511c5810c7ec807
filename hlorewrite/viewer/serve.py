"""The page on a local address, made anew each time it is asked for, so that a run can be watched by reloading."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hlorewrite.errors import HlorewriteError, UsageError

HOST = "127.0.0.1"


def serve(page: Callable[[], bytes], port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serves a page on this machine until it is interrupted.

    Args:
      page: makes the page.
      port: where; 0 chooses one that is free.
      ready: called with the address.

    Raises:
      UsageError: the port is taken.
    """
    try:
        server = server_for(page, port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used ({error.strerror})", hint="name another with --port") from None
    with server:
        ready(f"http://{HOST}:{server.server_address[1]}/ (end with Ctrl-C)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def server_for(page: Callable[[], bytes], port: int = 0) -> ThreadingHTTPServer:
    """A server of one page, bound to the loopback address."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.partition("?")[0] == "/"
            # Another site's name that resolves to this machine must not read the page.
            own = (self.headers.get("Host") or "").partition(":")[0] in (HOST, "localhost")
            if not (known and own):
                self.send_error(HTTPStatus.NOT_FOUND if own else HTTPStatus.FORBIDDEN)
                return
            try:
                content, kind = page(), "text/html; charset=utf-8"
            except HlorewriteError as error:
                content, kind = f"{error}\n".encode(), "text/plain; charset=utf-8"
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged."""

    return ThreadingHTTPServer((HOST, port), Handler)

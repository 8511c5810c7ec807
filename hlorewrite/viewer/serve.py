"""The page on a local address, made anew each time it is asked for, so that a run can be watched by reloading."""

import hmac
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from hlorewrite.errors import HlorewriteError, UsageError

HOST = "127.0.0.1"
_TOKEN_BYTES = 24


def serve(page: Callable[[], bytes], port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serves a page on this machine until it is interrupted, at an address with a random token.

    Args:
      page: makes the page.
      port: the port to listen on; 0 chooses a free one.
      ready: called with the address.

    Raises:
      UsageError: the port is taken.
    """
    try:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        server = server_for(page, token, port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used ({error.strerror})", hint="name another with --port") from None
    with server:
        ready(f"http://{HOST}:{server.server_address[1]}/?token={token} (end with Ctrl-C)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def server_for(page: Callable[[], bytes], token: str, port: int = 0) -> ThreadingHTTPServer:
    """A server of one page, bound to the loopback address.

    Args:
      page: makes the page.
      token: secret that each request must contain, because other users of the machine can reach the port.
      port: the port to listen on; 0 chooses a free one.
    """
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            given = parse_qs(asked.query).get("token", [""])[0]
            # Another site's name that resolves to this machine must not read the page.
            own = self.headers.get("Host") in (f"{HOST}:{server.server_port}", f"localhost:{server.server_port}")
            if not own or not hmac.compare_digest(given.encode(), token.encode()):
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            if asked.path != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                content, kind = page(), "text/html; charset=utf-8"
            except HlorewriteError as error:
                content, kind = f"{error}\n".encode(), "text/plain; charset=utf-8"
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged."""

    server = ThreadingHTTPServer((HOST, port), Handler)
    return server

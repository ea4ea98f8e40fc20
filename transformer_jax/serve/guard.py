"""What every request must satisfy, and what every answer says to the browser: an ASGI middleware.

A page of a stranger can make a browser send requests to a server on the same machine. The browser says in `Origin`
whose page it is. By DNS rebinding the stranger's own name leads to this server; the browser then says that name in
`Host`. An address in `Host` is no name, so it cannot be rebound.
"""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A body with the most characters that a request may have, each of 12 bytes, and some more.
MOST_BYTES = 1 << 19
# A client that sends more than it may gets its answer at the end of its body, as many read no answer before.
# This is the most bytes that are read and dropped.
_DROPPED = 1 << 24
_HEADERS = {
  "Content-Security-Policy": (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  ),
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
}


class Guard:
  """Refuses requests of other sites and bodies that are too large.

  Args:
    app: the application behind it.
    hosts: the names under which browsers may reach the server, besides `localhost` and addresses.
  """

  def __init__(self, app: ASGIApp, hosts: Collection[str]):
    self._app = app
    # Addresses pass anyway, and what is before the first colon of one is no name.
    self._hosts = {"localhost", *(_name(host) for host in hosts if not _is_address(host))} - {""}

  async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
    async def send_with_headers(message: Message) -> None:
      if message["type"] == "http.response.start":
        MutableHeaders(scope=message).update(_HEADERS)
      await send(message)

    refused = self._refused(Headers(scope=scope))
    if refused:
      await JSONResponse({"error": refused}, 403)(scope, receive, send_with_headers)
    else:
      await self._app(scope, _limited(receive), send_with_headers)

  def _refused(self, headers: Headers) -> str:
    """Why a request is refused; empty if it is not."""
    host = headers.get("host", "")
    name = _name(host)
    if not name:
      return "the request names no host: give it the header Host, such as localhost"
    if not (_is_address(name) or name in self._hosts):
      return f"the request is for the host {name!r}, which this server does not know: start it with --allow-host {name}"
    origin = headers.get("origin")
    if origin is not None and _host_of(origin) != host.lower():
      return (
        f"the request comes from a page of {origin!r}: only this server's own page may send requests; a proxy can give "
        "both pages one address, and must pass on the header Host"
      )
    return ""


def _host_of(origin: str) -> str | None:
  """The host and port in an origin; None if it is no origin."""
  try:
    return urlsplit(origin).netloc.lower()
  except ValueError:
    return None


def _name(host: str) -> str:
  """The name or address in `name:port`; an IPv6 address is in brackets."""
  if host.startswith("["):
    return host[1:].partition("]")[0]
  return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
  try:
    ipaddress.ip_address(name)
  except ValueError:
    return False
  return True


def _limited(receive: Receive) -> Receive:
  """`receive`, which raises the status 413 after a body that is too large."""
  size = 0

  async def limited() -> Message:
    nonlocal size
    message = await receive()
    size += len(message.get("body", b""))
    if size > MOST_BYTES:
      while size <= _DROPPED and message.get("more_body"):
        message = await receive()
        size += len(message.get("body", b""))
      raise HTTPException(
        413, f"the request has more than {MOST_BYTES:,} bytes: send the text in parts", {"Connection": "close"}
      )
    return message

  return limited

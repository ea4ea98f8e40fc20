"""The server: sockets, slow clients, and the end by a signal."""

import asyncio
import logging
import signal
import socket
from types import FrameType

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer_jax.runtime import process
from transformer_jax.runtime.errors import InputError, RunError
from transformer_jax.runtime.progress import say

# Seconds in which a client must have sent a whole request, or have read so many more bytes of its answer.
SECONDS = 20.0
LEAST_READ = 1 << 16
_MOST_CONNECTIONS = 512


class Connection(H11Protocol):
  """A connection that ends if its client takes too long to send a request or to read the answer."""

  _sending: asyncio.TimerHandle | None = None
  _reading: asyncio.TimerHandle | None = None

  def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
    super().connection_made(transport)
    transport.set_write_buffer_limits(high=0)  # `pause_writing` is then called for everything that is not read
    # A large buffer of the kernel would hide for long that a client reads.
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LEAST_READ)
    self._watch_request()

  def data_received(self, data: bytes) -> None:
    super().data_received(data)
    self._watch_request()

  def pause_writing(self) -> None:
    super().pause_writing()
    self._watch_reading()

  def resume_writing(self) -> None:
    super().resume_writing()
    _cancel(self._reading)

  def on_response_complete(self) -> None:
    super().on_response_complete()
    if self.conn.their_state is h11.SEND_BODY:  # the next request came with this one, and its body is not whole
      self._watch_request()

  def connection_lost(self, exc: Exception | None) -> None:
    _cancel(self._sending)
    _cancel(self._reading)
    super().connection_lost(exc)

  def _watch_request(self) -> None:
    """Starts the time of a request with its first byte, or with the connection, and ends it with the last byte."""
    if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
      _cancel(self._sending)
      self._sending = None
    elif self._sending is None:
      self._sending = self.loop.call_later(SECONDS, self.transport.abort)

  def _watch_reading(self) -> None:
    """Ends the connection if little is read; `resume_writing` is called when all has been read."""
    before = self.transport.get_write_buffer_size()

    def look() -> None:
      if self.transport.get_write_buffer_size() > before - LEAST_READ:
        self.transport.abort()
      else:
        self._watch_reading()

    self._reading = self.loop.call_later(SECONDS, look)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
  if timer is not None:
    timer.cancel()


class _Server(uvicorn.Server):
  """uvicorn's server: ends with status 0 after SIGTERM and SIGHUP, at once after a second Ctrl-C; says where it is."""

  def run(self, sockets: list[socket.socket] | None = None) -> None:
    with process.handled(self._end, signal.SIGHUP):  # uvicorn handles the other two
      super().run(sockets)

  async def startup(self, sockets: list[socket.socket] | None = None) -> None:
    for bound in sockets or []:
      try:
        bound.listen()  # on Linux two sockets can be bound to one port until one of them listens
      except OSError as error:
        host, port, *_ = bound.getsockname()
        raise _cannot_serve(host, port, error) from error
    await super().startup(sockets)
    for bound in sockets or []:
      say(f"the page is at {url(bound)} (Ctrl-C ends the server)")

  def handle_exit(self, sig: int, frame: FrameType | None) -> None:
    if sig == signal.SIGTERM:
      self._end(sig)  # uvicorn would raise the signal again after the last answer
    else:
      super().handle_exit(sig, frame)
      if self.force_exit:  # since Python 3.12 asyncio waits for the connections
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # no traceback for each request
        for connection in list(self.server_state.connections):
          connection.transport.abort()

  def _end(self, number: int) -> None:
    self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
  """A socket for the server; nobody can connect to it before `server` runs.

  Args:
    host: a name or an address of this machine.
    port: 0 means a free one.

  Raises:
    InputError: `host` cannot be a name.
    RunError: the address cannot be had.
  """
  bound = None
  try:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(address)
  except UnicodeError as error:
    raise InputError(f"--host {host!r} is no name of a machine: give a name or an address") from error
  except OSError as error:
    if bound is not None:
      bound.close()
    raise _cannot_serve(host, port, error) from error
  return bound


def _cannot_serve(host: str, port: int, error: OSError) -> RunError:
  return RunError(f"cannot serve at {host}, port {port}: {error.strerror}; choose another --port or --host")


def url(bound: socket.socket) -> str:
  """The address of the page."""
  host, port, *_ = bound.getsockname()
  return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server(app: ASGIApp) -> uvicorn.Server:
  """The server of an application; `run(sockets=[bound])` serves until a signal or `should_exit` ends it.

  It then answers the requests that it has accepted, and returns.
  """
  for name in ("uvicorn.error", "python_multipart"):
    logging.getLogger(name).setLevel(logging.ERROR)  # not each malformed request
  config = uvicorn.Config(
    app,
    http=Connection,
    ws="none",
    lifespan="off",
    log_config=None,
    access_log=False,
    proxy_headers=False,
    server_header=False,
    limit_concurrency=_MOST_CONNECTIONS,
  )
  return _Server(config)

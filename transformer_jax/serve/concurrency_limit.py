"""A middleware that lets at most so many requests at once into a part of the application, by ASGI."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_jax.serve.batcher import Busy


class ConcurrencyLimit:
  """Refuses requests while others fill the application behind it.

  A request counts until its client has read the answer, so that large answers do not fill the memory.

  Args:
    app: the application behind it.
    most: the most requests at once.

  Raises:
    Busy: so many requests are there already.
  """

  def __init__(self, app: ASGIApp, most: int):
    self._app, self._most = app, most
    self._inside = 0

  async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
    if self._inside >= self._most:
      raise Busy

    async def send_and_wait(message: Message) -> None:
      """A server buffers a message and waits at the next one: so that it waits, the body's end is one of its own."""
      if message["type"] != "http.response.body" or message.get("more_body"):
        await send(message)
        return
      await send({**message, "more_body": True})
      await send({"type": "http.response.body", "body": b"", "more_body": False})

    self._inside += 1
    try:
      await self._app(scope, receive, send_and_wait)
    finally:
      self._inside -= 1

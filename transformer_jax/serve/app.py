"""The application: LibreTranslate's routes, and the page with the routes that it needs."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_to_bytes

from babel import Locale, UnknownLocaleError
from python_multipart.multipart import parse_options_header
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from transformer_jax.config.experiment import MOST_ALPHA
from transformer_jax.runtime.errors import InputError, RunError, is_out_of_memory, one_line
from transformer_jax.serve import libretranslate
from transformer_jax.serve.batcher import Answer, AnswerBatch, Batcher, Busy
from transformer_jax.serve.concurrency_limit import ConcurrencyLimit
from transformer_jax.serve.guard import Guard
from transformer_jax.serve.libretranslate import Languages, TooLarge
from transformer_jax.serve.search import Options, Search, Translate

if TYPE_CHECKING:  # it imports Flax, which a cached translation does not need
  from transformer_jax.decoding.attention import Attention

# Each beam size has programs of its own, which are compiled when they are first used.
_MOST_BEAMS = 16
MOST_ATTENTIONS = 8  # at once, as the weights of long sentences take some 60 MB
MOST_WEIGHTS = 1 << 25  # of an attention, which take 128 MB
_URLENCODED = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_LONGEST_TYPE = 1000  # characters of a Content-Type, whose parser takes the square of their number
_PAGE = {
  "/": ("index.html", "text/html"),
  "/page.css": ("page.css", "text/css"),
  "/page.js": ("page.js", "text/javascript"),
  "/attention.js": ("attention.js", "text/javascript"),
}
_OTHERS = "the routes are POST /translate, GET /languages, GET /health and the page at /"


@dataclass(frozen=True)
class Served:
  """A model to serve.

  Attributes:
    name: what the page calls the model.
    translate: the function that translates lines.
    attention: the function from a sentence and its translation to the attention.
    batcher: the thread that calls both.
    languages: the model's languages.
    beam_size, length_penalty: the options of a request that does not give them.
  """

  name: str
  translate: Translate
  attention: "Callable[[str, str], Attention]"
  batcher: Batcher
  languages: Languages
  beam_size: int
  length_penalty: float


def application(served: Served, hosts: Collection[str] = ()) -> ASGIApp:
  """The ASGI application.

  Args:
    served: the model.
    hosts: the names under which browsers may reach the server, besides `localhost` and addresses.
  """
  endpoints = _Endpoints(served)
  app = Starlette(
    routes=[
      *(Route(path, _file(*file)) for path, file in _PAGE.items()),
      Route("/health", endpoints.health),
      Route("/languages", endpoints.languages),
      Route("/model", endpoints.model),
      Route("/translate", endpoints.translate, methods=["POST"]),
      Route("/hypotheses", endpoints.hypotheses, methods=["POST"]),
      Route(
        "/attention", endpoints.attention, methods=["POST"], middleware=[Middleware(ConcurrencyLimit, MOST_ATTENTIONS)]
      ),
    ],
    exception_handlers=_HANDLERS,
  )
  return Guard(app, hosts)  # around all of it, so that answers to unexpected errors have its headers as well


class _Endpoints:
  def __init__(self, served: Served):
    self._served = served

  async def health(self, request: Request) -> Response:
    return JSONResponse({"status": "ok"})

  async def languages(self, request: Request) -> Response:
    """The languages, by LibreTranslate's protocol; only the source language has a target."""
    source, target = self._served.languages
    return JSONResponse(
      [
        {"code": source, "name": _language_name(source), "targets": [target]},
        {"code": target, "name": _language_name(target), "targets": []},
      ]
    )

  async def model(self, request: Request) -> Response:
    """What the page shows and offers."""
    served = self._served
    return JSONResponse(
      {
        "name": served.name,
        "languages": [{"code": code, "name": _language_name(code)} for code in served.languages],
        "beam_size": served.beam_size,
        "length_penalty": served.length_penalty,
        "most_beams": _MOST_BEAMS,
      }
    )

  async def translate(self, request: Request) -> Response:
    """`POST /translate` of LibreTranslate's protocol, with JSON or a form."""
    served = self._served
    asked = libretranslate.parse(await _fields(request), served.languages)
    # One program serves every number of alternatives: it finds as many as it can, and the answer has the first.
    options = Options(served.beam_size, served.length_penalty, served.beam_size if asked.alternatives else 1)
    found = await self._answer(request, Search(served.translate, options), asked.lines)
    return JSONResponse(libretranslate.answer(asked, found, served.languages))

  async def hypotheses(self, request: Request) -> Response:
    """All hypotheses of each line of a text, with scores, for the page."""
    fields = await _fields(request)
    lines = libretranslate.lines_of(fields.get("q"), "q")
    libretranslate.require_size([lines])
    found = await self._answer(request, Search(self._served.translate, self._options(fields)), lines)
    text, *_ = libretranslate.joined(found.lines)
    hypotheses = [[translation._asdict() for translation in line] for line in found.lines]
    return JSONResponse({"text": text, "lines": hypotheses, "warnings": list(found.warnings)})

  async def attention(self, request: Request) -> Response:
    """The attention of one kind, rounded, for the page: `[layers, heads, query, key]`, with the tokens."""
    fields = await _fields(request)
    pair = ["\n".join(libretranslate.lines_of(fields.get(side), side)) for side in ("source", "target")]
    libretranslate.require_size([pair])
    found = await self._answer(request, self._attend, pair)
    kind = fields.get("kind") or [*found.weights][-1]
    if not isinstance(kind, str) or kind not in found.weights:
      raise InputError(f"kind is {kind!r}, but this model's attention is {', '.join(found.weights)}")
    content = await asyncio.to_thread(_json_of, found, kind)  # some 10 MB for long sentences
    return Response(content, media_type="application/json")

  def _attend(self, pairs: Sequence[Sequence[str]]) -> "list[Attention]":
    return [self._served.attention(source, target) for source, target in pairs]

  def _options(self, fields: dict[str, object]) -> Options:
    beam_size = fields.get("beam_size", self._served.beam_size)
    penalty = fields.get("length_penalty", self._served.length_penalty)
    if type(beam_size) is not int or not (0 < beam_size <= _MOST_BEAMS or beam_size == self._served.beam_size):
      own = f", or {self._served.beam_size}" if self._served.beam_size > _MOST_BEAMS else ""
      raise InputError(f"beam_size is {beam_size!r}, but must be a whole number from 1 to {_MOST_BEAMS}{own}")
    if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty <= MOST_ALPHA:
      raise InputError(f"length_penalty is {penalty!r}, but must be a number from 0 to {MOST_ALPHA}")
    return Options(beam_size, float(penalty), beam_size)  # pyright: ignore[reportArgumentType]  it is a number

  async def _answer(self, request: Request, answer_batch: AnswerBatch[Answer], texts: Sequence[str]) -> Answer:
    """The batcher's answer; a request whose client leaves before its turn is not translated."""
    answer = asyncio.wrap_future(self._served.batcher.submit(answer_batch, texts))
    gone = asyncio.ensure_future(_gone(request))
    await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
    if not answer.done():
      answer.cancel()
      raise HTTPException(400, "the client has left")  # which nobody reads
    gone.cancel()
    return answer.result()


def _json_of(found: "Attention", kind: str) -> str:
  """The answer for one kind of attention, a head at a time, so that other threads can run in between."""
  queries, keys = found.axes(kind)
  others = json.dumps({"kinds": [*found.weights], "kind": kind, "queries": queries, "keys": keys})
  layers = [
    ",".join(json.dumps(head.astype(float).round(4).tolist(), separators=(",", ":")) for head in layer)
    for layer in found.weights[kind]
  ]
  return f'{others[:-1]}, "weights": [{",".join(f"[{layer}]" for layer in layers)}]}}'


async def _gone(request: Request) -> None:
  """Waits until the client leaves; the request's body has been read."""
  while (await request.receive())["type"] != "http.disconnect":
    pass


async def _fields(request: Request) -> dict[str, object]:
  """The fields of a body of JSON or of a form; a field that a form repeats is a list.

  Raises:
    InputError: the body is not what its type says.
    HTTPException: the client leaves before its end.
  """
  try:
    return await _fields_of_body(request)
  except ClientDisconnect as error:
    raise HTTPException(400, "the client has left") from error  # which nobody reads


async def _fields_of_body(request: Request) -> dict[str, object]:
  kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
  content = await request.body()
  try:
    text = content.decode()  # of a form, too: an escaped byte and a bare one are no character together
    if kind == _URLENCODED:
      unquote_to_bytes(text).decode()
  except UnicodeDecodeError as error:  # a parser of forms would put other characters there
    raise InputError("the request's body is not UTF-8: encode its text so") from error
  if kind.endswith(("/json", "+json")):
    return _object(content)
  if kind not in (_URLENCODED, "multipart/form-data") or content.lstrip().startswith(b"{"):
    raise InputError(
      f"the request's Content-Type is {kind or 'missing'}: set it to application/json if the body is JSON, or send a "
      "form"
    )
  if kind == _URLENCODED:
    return _fields_by_name(_pairs(content.decode()))
  _require_utf8(request.headers.get("content-type", ""), content)
  try:
    async with request.form(max_files=0) as form:
      return _fields_by_name(form.multi_items())
  except HTTPException as error:
    raise InputError(
      f"the request's form cannot be read ({error.detail.rstrip('.')}): send text in its fields, no files, or send JSON"
    ) from error


def _require_utf8(content_type: str, content: bytes) -> None:
  """Refuses another charset, as Starlette would decode the fields by it; it uses the same parser."""
  if len(content_type) > _LONGEST_TYPE:
    raise InputError("the request's Content-Type is too long: send a form with a short boundary, or JSON")
  charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8").decode("latin-1").lower()
  if charset not in ("utf-8", "utf8") and not (charset == "us-ascii" and content.isascii()):
    raise InputError(f"the request's charset is {charset!a:.40}, but its text must be UTF-8: send it without a charset")


def _object(content: bytes) -> dict[str, object]:
  """The fields of a JSON object."""
  try:
    fields = json.loads(content)
  except (ValueError, RecursionError) as error:
    raise InputError('the request\'s body is not JSON: send an object such as {"q": "text"}') from error
  if not isinstance(fields, dict):
    raise InputError('the request\'s body must be a JSON object, such as {"q": "text"}')
  return fields


def _pairs(form: str) -> list[tuple[str, str]]:
  """The names and values of an urlencoded form; Starlette's own parser reads bytes that are not encoded as Latin-1."""
  try:
    return parse_qsl(form, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
  except ValueError as error:
    raise InputError(f"the request's form has more than {_MOST_FIELDS:,} fields: send a list q as JSON") from error


def _fields_by_name(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
  fields: dict[str, list[object]] = {}
  for name, value in pairs:
    fields.setdefault(name, []).append(value)
  return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
  """The endpoint of a file of the page."""
  content = resources.files("transformer_jax.serve").joinpath("page", name).read_bytes()

  async def respond(request: Request) -> Response:
    return Response(content, media_type=media_type)

  return respond


def _language_name(code: str) -> str:
  """The English name of a language; of an unknown code the code itself."""
  try:
    return Locale.parse(code, sep="-").get_display_name("en") or code
  except (ValueError, UnknownLocaleError):
    return code


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
  """An error, in the form of LibreTranslate's protocol."""
  return JSONResponse({"error": sentence}, status, headers)


async def _failed(request: Request, error: Exception) -> Response:
  match error:
    case HTTPException(status_code=404):
      return _error(404, f"there is no {request.url.path}: {_OTHERS}")
    case HTTPException(status_code=405):
      return _error(405, f"{request.method} does not suit {request.url.path}: {_OTHERS}", dict(error.headers or {}))
    case HTTPException():
      return _error(error.status_code, error.detail, dict(error.headers or {}))
    case InputError():
      return _error(400, str(error))
    case TooLarge():
      return _error(413, str(error))
    case Busy():
      return _error(503, "too many requests wait: send it again later", {"Retry-After": "1"})
    case RunError():
      return _error(500, str(error))
  if is_out_of_memory(error):
    return _error(500, "memory is exhausted: send less text, or use a smaller beam size")
  return _error(500, f"the program failed: {type(error).__name__}: {one_line(error, 200)}")


_HANDLERS: dict[type[Exception], ExceptionHandler] = dict.fromkeys(
  (HTTPException, InputError, TooLarge, Busy, RunError, Exception), _failed
)

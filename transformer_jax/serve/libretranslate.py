"""LibreTranslate's protocol: what a request for a translation says, and what the answer says.

Source: the server's own description of `POST /translate`, https://docs.libretranslate.com/api/operations/translate.
"""

import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from transformer_jax.decoding.translation import Translation
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.texts import require_text
from transformer_jax.serve.search import Found

AUTO = "auto"
_MOST_CHARACTERS = 1 << 15  # of a request, over all its texts
_MOST_LINES = 1 << 12


class TooLarge(Exception):
  """A request has more text than the server takes."""


class Languages(NamedTuple):
  """The codes of the two languages of a model."""

  source: str
  target: str


class Request(NamedTuple):
  """A request for a translation.

  Attributes:
    texts: the lines of each text.
    several: whether the texts came as a list; the answer is a list, too.
    alternatives: how many translations besides the best are wanted.
    auto: whether the client left it to the server to say which language the source is.
  """

  texts: list[list[str]]
  several: bool
  alternatives: int
  auto: bool

  @property
  def lines(self) -> list[str]:
    """The lines of all texts."""
    return [line for text in self.texts for line in text]


def parse(fields: Mapping[str, object], languages: Languages) -> Request:
  """Reads the fields of a request; `api_key` and fields that the protocol does not know are ignored.

  Raises:
    InputError: a field is missing or cannot be used.
    TooLarge: there is too much text.
  """
  q = fields.get("q")
  texts = [lines_of(text, f"q[{i}]") for i, text in enumerate(q)] if isinstance(q, list) else [lines_of(q, "q")]
  require_size(texts)
  source = _language(fields, "source", (languages.source, AUTO), languages)
  _language(fields, "target", (languages.target,), languages)
  if fields.get("format") not in (None, "", "text"):
    raise InputError(f"format is {fields['format']!r}, but this server translates plain text alone: set it to 'text'")
  return Request(texts, isinstance(q, list), _alternatives(fields.get("alternatives")), source == AUTO)


def lines_of(text: object, name: str) -> list[str]:
  """The lines of a text; they end with LF, CR LF or CR.

  Raises:
    InputError: the text is missing or not a text.
  """
  if text is None:
    raise InputError(f"{name} is missing: send a text as {name}")
  require_text(text, name)
  return str(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")


def require_size(texts: Sequence[Sequence[str]]) -> None:
  """Raises TooLarge if the texts have too many lines or characters for one request."""
  lines = sum(max(1, len(text) - (text[-1] == "")) for text in texts)  # a line feed at the end begins no line
  characters = sum(len(line) for text in texts for line in text)
  for count, most, what in (
    (lines, _MOST_LINES, "lines"),
    (characters, _MOST_CHARACTERS, "characters"),
  ):
    if count > most:
      raise TooLarge(f"the text has {count:,} {what}, but a request may have at most {most:,}: send it in parts")


def answer(request: Request, found: Found, languages: Languages) -> dict[str, object]:
  """The answer to a request; `warnings` is there only if there are any, for example about a line that is too long."""
  lines = iter(found.lines)
  translations = [joined([next(lines) for _ in text]) for text in request.texts]
  fields: dict[str, object] = {"translatedText": [texts[0] for texts in translations]}
  if request.auto:
    # The model has one source language. Nothing was detected, which the confidence says.
    fields["detectedLanguage"] = [{"language": languages.source, "confidence": 0.0}] * len(translations)
  if request.alternatives:
    fields["alternatives"] = [texts[1 : request.alternatives + 1] for texts in translations]
  if not request.several:
    fields = {name: values[0] for name, values in fields.items() if isinstance(values, list)}
  return fields | ({"warnings": _warnings(request, found)} if found.warnings else {})


def _warnings(request: Request, found: Found) -> list[str]:
  """The warnings, with the number of each line in its text."""
  ends = [0, *accumulate(map(len, request.texts))]
  said = []
  for warning in found.warnings:
    text = bisect.bisect_left(ends, warning.line)
    prefix = f"text {text}, " if request.several else ""
    said.append(f"{prefix}line {warning.line - ends[text - 1]} {warning.what}")
  return said


def joined(lines: Sequence[Sequence[Translation]]) -> list[str]:
  """The different translations of a text, best first: the n-th has the n-th translation of each line, or its last."""
  most = max(map(len, lines))
  texts = ["\n".join(line[min(rank, len(line) - 1)].text for line in lines) for rank in range(most)]
  return list(dict.fromkeys(texts))


def _language(fields: Mapping[str, object], name: str, known: tuple[str, ...], languages: Languages) -> str:
  code = fields.get(name)
  if not code:
    raise InputError(f"{name} is missing: this model translates from {languages.source!r} to {languages.target!r}")
  if not isinstance(code, str) or code.lower() not in [own.lower() for own in known]:
    raise InputError(f"{name} is {code!r}, but this model translates from {languages.source!r} to {languages.target!r}")
  return code.lower()


def _alternatives(value: object) -> int:
  """The number of alternatives; a form has it as text."""
  if value is None:
    return 0
  text = str(value)
  if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
    raise InputError(f"alternatives is {value!r}, but must be a whole number from 0")
  return int(text)

"""The attention of any run, and its forms as files: JSON, NPZ and a page for a browser."""

import io
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_jax import registry
from transformer_jax.decoding.attention import Attention
from transformer_jax.decoding.generator import Generator
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside import page
from transformer_jax.language.config import BERTConfig
from transformer_jax.runs.run import Run
from transformer_jax.runs.steps import Step
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject
from transformer_jax.tasks.encoder_attention import encoder_attention

_DIGITS = 6  # of a weight in JSON
_THOUSANDTHS = 1000  # the page's unit of weights
# Texts in the place of characters that have no shape. Few fonts have signs for control characters, so these are written
# like SentencePiece's bytes.
_VISIBLE = {chr(i): f"<0x{i:02X}>" for i in (*range(32), 127)} | {" ": "␣", "\n": "⏎"}
_VISIBLE |= {"\ufffe": "\ufffd", "\uffff": "\ufffd"}  # XML forbids them, so a picture could not be read
_BYTE = re.compile("<0x[0-9A-F]{2}>")


class Choice(NamedTuple):
  """What a picture shows; all numbers count from 0.

  Attributes:
    kind: the kind of attention.
    layer: the layer.
    head: the head; None is all heads.
    word: the token that looks; None is every token.
  """

  kind: str
  layer: int
  head: int | None = None
  word: int | None = None


def attention_of(run: Run, step: Step, text: str, target: str | None = None) -> Attention:
  """The attention of a run's model over a text, or over a text and its translation.

  Args:
    run: the run.
    step: which checkpoint.
    text: the source of a model that translates, the text of another one.
    target: the translation; None is the model's own.

  Raises:
    InputError: the model has no attention, the text is too long, or the model takes no target.
    RunError: a weight is not finite.
  """
  model = run.config.model
  if model.translates:
    return Translator.load(run, step=step).attention(text, target)
  if target is not None:
    raise InputError(f"--target is for a model that translates, but {run.path} holds another one: leave it out")
  if registry.command_of(model) == "generate":
    return Generator.load(run, step=step).attention(text)
  if isinstance(model, BERTConfig):
    found = run.model(step=step)
    return encoder_attention(found.config, found.params, found.tokenizer, text)
  raise InputError(
    f"{run.path} holds a model without attention ({registry.name_of(model)}): take a run of another model"
  )


def visible(tokens: tuple[str, ...]) -> list[str]:
  """The tokens with a sign in the place of each space, line feed and control character."""
  return ["".join(_VISIBLE.get(character, character) for character in token) for token in tokens]


def columns(text: str) -> int:
  """The width of a text in letters, of which those of East Asia are twice as wide as others."""
  return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def text_of(tokens: Sequence[str]) -> str:
  """The text of tokens, of which bytes such as `<0xE2>` may be a character together."""
  parts = [bytes([int(token[3:5], 16)]) if _BYTE.fullmatch(token) else token.encode() for token in tokens]
  return b"".join(parts).decode(errors="replace")


def to_json(attention: Attention) -> bytes:
  """The tokens, and the weights as lists `[layers][heads][query][key]`."""
  weights = {kind: found.astype(np.float64).round(_DIGITS).tolist() for kind, found in attention.weights.items()}
  texts = {"source": attention.source, "read": attention.read, "target": attention.target}
  return json.dumps(texts | {"weights": weights}, ensure_ascii=False).encode()


def to_npz(attention: Attention) -> bytes:
  """The arrays `source`, `read` and `target` of strings, and one of float32 for each kind, for `np.load`.

  NumPy's strings lose NULs at their end.
  """
  texts = {name: np.array(getattr(attention, name), str) for name in ("source", "read", "target")}
  arrays: dict[str, Any] = texts | attention.weights
  file = io.BytesIO()
  np.savez_compressed(file, **arrays)
  return file.getvalue()


def to_page(attention: Attention, run: str, texts: list[str]) -> bytes:
  """A page for a browser, in one file that loads nothing else.

  Args:
    attention: the tokens and weights.
    run: a line that says which model this is.
    texts: the sentences, to be shown above.
  """
  kinds = [_kind_for_page(attention, kind) for kind in attention.weights]
  data = {"run": run, "texts": texts, "kinds": kinds}
  return page.render("attention", title=texts[0] if texts else run, data=data)


def _kind_for_page(attention: Attention, kind: str) -> JsonObject:
  query, key = attention.axes(kind)
  weights = np.rint(attention.weights[kind] * _THOUSANDTHS).astype(int).tolist()
  return {"name": kind, "query": visible(query), "key": visible(key), "weights": weights}

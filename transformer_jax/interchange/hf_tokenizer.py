"""The vocabulary as `tokenizer.json`, which Hugging Face's `PreTrainedTokenizerFast` reads.

It gives the tokens of `data/documents.py`: each line is encoded by itself with a space in front, and the byte of a line
feed stands between two lines. SentencePiece joins the two neighbours whose piece is the first in the vocabulary, which
is what a list of merges in that order says. Pieces are spelled with real spaces. So the sign U+2581, which
SentencePiece reads as a space, is a character without a piece there, and is spelled in bytes as here.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import vocabulary
from transformer_jax.model.special_tokens import FIRST_PIECE
from transformer_jax.runtime.errors import InputError

# Where a line begins that is not empty. In these patterns `^` is the beginning of any line.
_LINE_STARTS = (r"\A(?=[^\n])", r"(?<=\n)(?=[^\n])")


def require(tokenizer: Tokenizer) -> None:
  """Raises InputError if tokenizer.json cannot express the vocabulary, as one that is not of byte-pair encoding."""
  spelled, merged = vocabulary.spelled(tokenizer), vocabulary.merged(tokenizer)
  if merged is None or any("\n" in piece for piece in merged) or len(set(spelled)) < len(spelled):
    raise InputError(
      "the run's vocabulary is not one that `train` learns by byte-pair encoding from lines, and tokenizer.json cannot "
      "express it: choose --to safetensors, which takes every model"
    )


def write(folder: Path, tokenizer: Tokenizer, single: str, pair: str, settings: dict[str, Any]) -> None:
  """Writes `tokenizer.json`, `tokenizer_config.json`, and `tokenizer.model` for SentencePiece.

  Args:
    folder: the model's folder.
    tokenizer: the run's.
    single: the tokens of a text, such as `<s> $A`.
    pair: the tokens of two texts; a number after a colon is the token type.
    settings: more settings for `tokenizer_config.json`.
  """
  names = vocabulary.spelled(tokenizer)
  special = {name: number for number, name in enumerate(names[:FIRST_PIECE])}
  values = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [_added_token(name, number) for name, number in special.items()],
    "normalizer": {"type": "Sequence", "normalizers": [_replace(start, " ") for start in _LINE_STARTS]},
    "pre_tokenizer": {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False},
    "post_processor": {
      "type": "TemplateProcessing",
      "single": _template(single),
      "pair": _template(pair),
      "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in special.items()},
    },
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, _replace("^ ", "")]},
    "model": _model(names, vocabulary.merged(tokenizer) or []),
  }
  (folder / "tokenizer.json").write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
  config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **settings}
  (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
  (folder / "tokenizer.model").write_bytes(vocabulary.sentencepiece_model(tokenizer))


def _model(names: Sequence[str], merged: Sequence[str]) -> dict[str, Any]:
  return {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": True,
    "ignore_merges": False,
    "vocab": {name: number for number, name in enumerate(names)},
    "merges": merges(merged),
  }


def merges(pieces: Sequence[str]) -> list[list[str]]:
  """The pairs of pieces that are a piece together, in the order of that piece.

  >>> merges(["ab", "abc", "a", "b", "c", "bc"])
  [['a', 'b'], ['a', 'bc'], ['ab', 'c'], ['b', 'c']]
  """
  known = set(pieces)
  return [
    [piece[:end], piece[end:]]
    for piece in pieces
    for end in range(1, len(piece))
    if piece[:end] in known and piece[end:] in known
  ]


def _added_token(name: str, number: int) -> dict[str, Any]:
  flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
  return {"id": number, "content": name, **flags, "special": True}


def _replace(pattern: str, content: str) -> dict[str, Any]:
  return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _template(text: str) -> list[dict[str, Any]]:
  parts = []
  for part in text.split():
    name, _, kind = part.partition(":")
    of = {"Sequence": {"id": name[1:]}} if name.startswith("$") else {"SpecialToken": {"id": name}}
    [(key, value)] = of.items()
    parts.append({key: {**value, "type_id": int(kind or 0)}})
  return parts

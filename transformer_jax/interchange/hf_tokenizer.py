"""The vocabulary as `tokenizer.json`, which Hugging Face's `PreTrainedTokenizerFast` reads.

It gives the tokens of `data/documents.py`: each line is encoded by itself with a space in front, and the byte of a line
feed stands between two lines. SentencePiece joins the two neighbours whose piece is the first in the vocabulary, which
is what a list of merges in that order says. Pieces are spelled with real spaces. So the sign U+2581, which
SentencePiece reads as a space, is a character without a piece there, and is spelled in bytes as here.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from transformer_jax.data.subwords import Kind, SubwordTokenizer, Vocabulary
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import hf_vocabulary, vocabulary
from transformer_jax.interchange.expressible import TAKES_ALL
from transformer_jax.model.special_tokens import FIRST_PIECE
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject

# Where a line begins that is not empty. In these patterns `^` is the beginning of any line.
_LINE_STARTS = (r"\A(?=[^\n])", r"(?<=\n)(?=[^\n])")
_KINDS = {"bert": Kind.WORDPIECE, "gpt2": Kind.BYTES}
_Template = Sequence[str | tuple[str, int]]
_BPE = {
  "type": "BPE",
  **dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")),
  **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False),
}


def require(tokenizer: Tokenizer, to: str) -> None:
  """Raises InputError if tokenizer.json cannot express the vocabulary, as one that is not of byte-pair encoding."""
  if isinstance(tokenizer, SubwordTokenizer):
    if tokenizer.vocabulary.kind is not _KINDS[to]:
      raise InputError(f"the format {to} has no {tokenizer.vocabulary.kind.value} vocabulary: {TAKES_ALL}")
    return
  spelled, merged = vocabulary.spelled(tokenizer), vocabulary.merged(tokenizer)
  if merged is None or any("\n" in piece for piece in merged) or len(set(spelled)) < len(spelled):
    raise InputError(
      "the run's vocabulary is not one that `train` learns by byte-pair encoding from lines, and tokenizer.json cannot "
      f"express it: {TAKES_ALL}"
    )


def write_subwords(folder: Path, words: Vocabulary, settings: JsonObject) -> None:
  """Writes `tokenizer.json` and `tokenizer_config.json` of an imported vocabulary.

  Args:
    folder: the model's folder.
    words: the vocabulary.
    settings: settings for `tokenizer_config.json`; of GPT-2 with its `bos_token`, which stands before a text.
  """
  numbers = {piece: number for number, piece in enumerate(words.pieces) if piece != hf_vocabulary.filler(number)}
  special = [piece for piece in words.special if piece in numbers]
  if words.kind is Kind.BYTES:
    parts, kind = _byte_level(words, numbers, settings["bos_token"])
  else:
    parts, kind = _wordpiece(words, numbers)
    special.append(words.unknown)
  added = [_added_token(piece, numbers[piece]) for piece in sorted(special, key=numbers.__getitem__)]
  _write(folder, {"added_tokens": added, **parts}, kind | settings)


def _byte_level(words: Vocabulary, numbers: dict[str, int], begin: str) -> tuple[JsonObject, JsonObject]:
  """Parts of `tokenizer.json`, and settings of `tokenizer_config.json`."""
  spaces = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
  parts = {
    **{"normalizer": None, "pre_tokenizer": spaces, "decoder": spaces},
    # It may be the name of a row without a piece, which `numbers` lacks.
    "post_processor": _post_processor([begin, "$A"], [begin, "$A", "$B"], {begin: words.pieces.index(begin)}),
    "model": {**_BPE, "vocab": numbers, "merges": words.merges},
  }
  return parts, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False}


def _wordpiece(words: Vocabulary, numbers: dict[str, int]) -> tuple[JsonObject, JsonObject]:
  """Parts of `tokenizer.json`, and settings of `tokenizer_config.json`."""
  pad, mask, cls, sep = words.special
  around = {piece: numbers[piece] for piece in (cls, sep)}
  parts = {
    "normalizer": {
      "type": "BertNormalizer",
      "clean_text": words.clean,
      "handle_chinese_chars": words.chinese_apart,
      "strip_accents": words.strip_accents,
      "lowercase": words.lowercase,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": _post_processor([cls, "$A", sep], [cls, "$A", sep, ("$B", 1), (sep, 1)], around),
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {
      "type": "WordPiece",
      "unk_token": words.unknown,
      "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 100,
      "vocab": numbers,
    },
  }
  return parts, {
    # The library's BERT deletes control characters in any case.
    "tokenizer_class": "BertTokenizer" if words.clean else "PreTrainedTokenizerFast",
    **{"pad_token": pad, "mask_token": mask, "cls_token": cls, "sep_token": sep, "unk_token": words.unknown},
    "do_lower_case": words.lowercase,
    "strip_accents": words.strip_accents,
    "tokenize_chinese_chars": words.chinese_apart,
  }


def _write(folder: Path, values: JsonObject, config: JsonObject) -> None:
  values = {"version": "1.0", "truncation": None, "padding": None, **values}
  (folder / "tokenizer.json").write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
  (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def write(folder: Path, tokenizer: Tokenizer, single: _Template, pair: _Template, settings: JsonObject) -> None:
  """Writes `tokenizer.json`, `tokenizer_config.json`, and `tokenizer.model` for SentencePiece.

  Args:
    folder: the model's folder.
    tokenizer: the run's.
    single: the tokens of a text, such as `["<s>", "$A"]`.
    pair: the tokens of two texts, those of another type than 0 with their type, such as `("$B", 1)`.
    settings: more settings for `tokenizer_config.json`.
  """
  names = vocabulary.spelled(tokenizer)
  special = {name: number for number, name in enumerate(names[:FIRST_PIECE])}
  values = {
    "added_tokens": [_added_token(name, number) for name, number in special.items()],
    "normalizer": {"type": "Sequence", "normalizers": [_replace(start, " ") for start in _LINE_STARTS]},
    "pre_tokenizer": {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False},
    "post_processor": _post_processor(single, pair, special),
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, _replace("^ ", "")]},
    "model": _model(names, vocabulary.merged(tokenizer) or []),
  }
  config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **settings}
  _write(folder, values, config)
  (folder / "tokenizer.model").write_bytes(vocabulary.sentencepiece_model(tokenizer))


def _model(names: Sequence[str], merged: Sequence[str]) -> JsonObject:
  numbers = {name: number for number, name in enumerate(names)}
  return {**_BPE, "byte_fallback": True, "vocab": numbers, "merges": merges(merged)}


def _post_processor(single: _Template, pair: _Template, special: dict[str, int]) -> JsonObject:
  return {
    "type": "TemplateProcessing",
    "single": _template(single),
    "pair": _template(pair),
    "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in special.items()},
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


def _added_token(name: str, number: int) -> JsonObject:
  flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
  return {"id": number, "content": name, **flags, "special": True}


def _replace(pattern: str, content: str) -> JsonObject:
  return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _template(template: _Template) -> list[JsonObject]:
  parts = []
  for part in template:
    name, kind = (part, 0) if isinstance(part, str) else part
    key, its = ("Sequence", name[1:]) if name in ("$A", "$B") else ("SpecialToken", name)
    parts.append({key: {"id": its, "type_id": kind}})
  return parts

"""The tokenizer of a folder of Hugging Face transformers: `vocab.txt` of BERT, `vocab.json` and `merges.txt` of GPT-2,
or `tokenizer.json`, if it says nothing else than these; or the SentencePiece model of an exported run."""

import re
from collections.abc import Callable, Container, Mapping, Sequence

from transformer_jax.data.sentencepiece_tokenizer import LARGEST, SentencePieceTokenizer
from transformer_jax.data.subwords import Kind, SubwordTokenizer, Vocabulary, is_texts
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import vocabulary
from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.interchange.settings import Settings
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json, JsonObject

SENTENCEPIECE, BOTH = "tokenizer.model", "tokenizer.json"
_WORDS, _PIECES, _MERGES = "vocab.txt", "vocab.json", "merges.txt"
_CONFIG, _ADDED = "tokenizer_config.json", "added_tokens.json"
_CLASSES = ("BertTokenizer", "BertTokenizerFast")
_ROUNDED = 1024  # rows without a piece that a small table may have: tables are rounded up
_SPECIAL = {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def exported(folder: ForeignFolder, size: int) -> Tokenizer | None:
  """The tokenizer of the run that was exported into the folder, if one was.

  Args:
    folder: the folder.
    size: the rows of the model's embedding.

  Raises:
    InputError: the file is no SentencePiece model of such a run, or of another one.
  """
  if not folder.has(SENTENCEPIECE):
    return None
  model = vocabulary.without_dummy_prefix(folder.bytes(SENTENCEPIECE, LARGEST))
  tokenizer = SentencePieceTokenizer(model, str(folder.path / SENTENCEPIECE))
  if tokenizer.vocab_size != size:
    raise _of_another_size(folder, tokenizer.vocab_size, size)
  return tokenizer


def _require_not_exported(file: Settings) -> None:
  """Refuses the tokenizer of an exported run whose SentencePiece model is gone: the library does not save it again."""
  if _part(file, "model").value("byte_fallback", False) is True:
    raise InputError(
      f"{file.path} spells unknown characters by bytes, as that of an exported run, which `import` reads from "
      f"{SENTENCEPIECE}: if it is one, copy this file from the folder that `export` wrote"
    )


def wordpiece(folder: ForeignFolder, size: int) -> SubwordTokenizer:
  """The tokenizer of a BERT.

  Args:
    folder: the folder.
    size: the rows of the model's embedding.

  Raises:
    InputError: there is none, it is damaged, or is of another kind.
  """
  config = folder.settings(_CONFIG, optional=True)
  special = tuple(config.token(name, default) for name, default in _SPECIAL.items())
  if folder.has(BOTH):
    normalizer, unknown, numbers = _wordpiece_of_json(folder.settings(BOTH), special)
    lower, apart = "lowercase", "handle_chinese_chars"
    _require_same(config, normalizer)
  else:
    _require_plain(config)
    normalizer, unknown = config, config.token("unk_token", "[UNK]")
    words = {word: number for number, word in enumerate(_lines(folder, _WORDS)) if word}
    numbers = _numbers(str(folder.path / _WORDS), words, [])
    _require_none_added(folder, numbers, (*special, unknown))
    lower, apart = "do_lower_case", "tokenize_chinese_chars"
  pieces = _filled(folder, numbers, size)
  lowercase, chinese_apart, clean = (normalizer.truth(name, True) for name in (lower, apart, "clean_text"))
  strip_accents = normalizer.truth("strip_accents") if "strip_accents" in normalizer else None
  return _tokenizer(
    folder,
    lambda: Vocabulary(
      Kind.WORDPIECE,
      pieces,
      special=special,
      unknown=unknown,
      lowercase=lowercase,
      strip_accents=strip_accents,
      chinese_apart=chinese_apart,
      clean=clean,
    ),
  )


def notes(folder: ForeignFolder) -> tuple[str, ...]:
  """A sentence if a BERT's texts are lowercased by default, though its vocabulary is probably one with case."""
  settings = folder.settings(_CONFIG, optional=True)
  if "do_lower_case" in settings or not folder.has(_WORDS) or any(map(folder.has, (SENTENCEPIECE, BOTH))):
    return ()
  unreachable = [word for word in _lines(folder, _WORDS) if word != word.lower() and not re.fullmatch(r"\[.*\]", word)]
  if not unreachable:
    return ()
  return (
    f"{settings.path} does not say do_lower_case, so texts are lowercased, as in transformers; but {_WORDS} has words "
    f'with capitals, such as {unreachable[0]!a:.80}: if the model has case, write {{"do_lower_case": false}} there '
    "and import it again into another --workdir",
  )


def _require_plain(config: Settings) -> None:
  """Refuses a vocabulary of another tokenizer than BERT's own, such as that of Japanese models, which finds words."""
  config.require("tokenizer_class", _CLASSES)
  config.require("do_basic_tokenize", [True])
  config.require("clean_text", [True], "the library deletes control characters in any case")
  for name in ("word_tokenizer_type", "subword_tokenizer_type"):
    config.require(name, [])


def _require_same(config: Settings, normalizer: Settings) -> None:
  """Refuses a tokenizer_config.json that says something else than tokenizer.json.

  The library's BERT follows the former, and what is missing there has its default.
  """
  lower = normalizer.truth("lowercase", True)
  found = {
    "do_lower_case": lower,
    "strip_accents": normalizer.truth("strip_accents", lower),
    "tokenize_chinese_chars": normalizer.truth("handle_chinese_chars", True),
  }
  for name, value in found.items():
    config.require(name, [value], f"{BOTH} says so, and the model was trained with one of the two")
  if config.value("tokenizer_class", _CLASSES[0]) not in _CLASSES:  # another one follows tokenizer.json
    return
  normalizer.require("clean_text", [True], f"the library's {_CLASSES[0]} deletes control characters in any case")
  defaults = {"do_lower_case": True, "strip_accents": lower, "tokenize_chinese_chars": True}
  for name, default in defaults.items():
    if name not in config and found[name] != default:
      raise config.wrong(name, f"{found[name]}, as {BOTH} says: a missing one is {default} for the library")


def _wordpiece_of_json(file: Settings, special: Sequence[str]) -> tuple[Settings, str, dict[str, int]]:
  """The settings of the normalisation, the piece of unknown words, and the numbers of the pieces."""
  _require_not_exported(file)
  model, normalizer = _part(file, "model"), _part(file, "normalizer")
  model.require("type", ["WordPiece"])
  model.require("continuing_subword_prefix", ["##"])
  model.require("max_input_chars_per_word", [100])
  normalizer.require("type", ["BertNormalizer"])
  _part(file, "pre_tokenizer").require("type", ["BertPreTokenizer"])
  unknown = model.text("unk_token", "[UNK]")
  added = file.value("added_tokens", [])
  numbers = _numbers(file.path, model.value("vocab"), added)
  for token in added:
    if token["content"] not in (*special, unknown):
      raise _added(file.path, token["content"])
  return normalizer, unknown, numbers


def _require_special(path: str, added: Sequence[JsonObject], known: Sequence[str]) -> None:
  """Refuses added words: the library finds them in a text before all pieces, and the tokenizer here does not."""
  for token in added:
    if token.get("special") is not True and token["content"] not in known:
      raise _added(path, token["content"])


def _require_none_added(folder: ForeignFolder, pieces: Container[str], known: Sequence[str] | None = None) -> None:
  """Refuses added words of a folder without tokenizer.json, whose settings name the special tokens.

  Args:
    folder: the folder.
    pieces: the words of its vocabulary.
    known: the only special tokens that there may be; None is any.
  """
  config = folder.settings(_CONFIG, optional=True)
  try:
    special, words = _of_settings(config)
  except (AttributeError, LookupError, TypeError) as error:
    raise InputError(f"{config.path} has a token without a text: take another copy") from error
  if known is not None:
    special, words = set(known), [*words, *special]
  # A word of the vocabulary that is added as well is found in a text before the other pieces.
  later = [word for word in folder.settings(_ADDED, optional=True).all() if word not in pieces]
  for name, added in ((_CONFIG, words), (_ADDED, later)):
    for word in added:
      if word not in special:
        raise _added(str(folder.path / name), word)


def _of_settings(config: Settings) -> tuple[set[str], list[str]]:
  """The special tokens that a tokenizer_config.json names, and all tokens that it adds."""
  named = [value for name, value in config.all().items() if name.endswith("_token")]
  named = [value for value in named if value is not None and not isinstance(value, bool)]  # as that of `add_bos_token`
  named += config.value("additional_special_tokens", [])
  special = {value["content"] if isinstance(value, dict) else value for value in named}
  tokens = config.value("added_tokens_decoder", {}).values()
  if not all(isinstance(each["content"], str) for each in tokens):
    raise TypeError
  return special | {each["content"] for each in tokens if each.get("special") is True}, [
    each["content"] for each in tokens
  ]


def _added(path: str, word: str) -> InputError:
  return InputError(
    f"{path} adds the word {word!a:.80} to those of its model, and the tokenizer here has no such words"
  )


def byte_level(folder: ForeignFolder, size: int, ends: tuple[int, ...]) -> SubwordTokenizer:
  """The tokenizer of a GPT-2.

  Args:
    folder: the folder.
    size: the rows of the model's embedding.
    ends: the numbers of the tokens in front of a text and behind it.

  Raises:
    InputError: there is none, it is damaged, or is of another kind.
  """
  folder.settings(_CONFIG, optional=True).require("add_prefix_space", [False])
  if folder.has(BOTH):
    numbers, merges, added = _byte_level_of_json(folder.settings(BOTH), ends)
  else:
    numbers = _numbers(str(folder.path / _PIECES), folder.settings(_PIECES).all(), [])
    lines = [line for line in _lines(folder, _MERGES) if line and not line.startswith("#version")]
    merges, added = _pairs(str(folder.path / _MERGES), lines), []
    _require_none_added(folder, numbers)
  pieces = _filled(folder, numbers, size)
  silent = {pieces[number] for number in ends} | {filler(i) for i in range(size)} | {each["content"] for each in added}
  special = tuple(piece for piece in pieces if piece in silent)
  return _tokenizer(folder, lambda: Vocabulary(Kind.BYTES, pieces, tuple(merges), special))


def _tokenizer(folder: ForeignFolder, made: Callable[[], Vocabulary]) -> SubwordTokenizer:
  try:
    return SubwordTokenizer(made())
  except InputError as error:
    raise InputError(f"{folder.path}: {error}") from error


def _byte_level_of_json(
  file: Settings, ends: Sequence[int]
) -> tuple[dict[str, int], list[tuple[str, str]], list[JsonObject]]:
  """The numbers of the pieces, the merges, and the tokens that were added."""
  _require_not_exported(file)
  model, spaces = _part(file, "model"), _part(file, "pre_tokenizer")
  for name, of in (("normalizer", file), ("dropout", model)):
    if name in of:
      raise of.wrong(name, "null: the model here has none")
  model.require("type", ["BPE"])
  spaces.require("type", ["ByteLevel"])
  spaces.require("use_regex", [True])
  spaces.require("add_prefix_space", [False])
  for name in ("continuing_subword_prefix", "end_of_word_suffix"):
    model.require(name, [""])
  for name in ("byte_fallback", "ignore_merges"):
    model.require(name, [False])
  added = file.value("added_tokens", [])
  numbers = _numbers(file.path, model.value("vocab"), added)
  _require_special(file.path, added, [piece for piece, number in numbers.items() if number in ends])
  return numbers, _pairs(file.path, model.value("merges", [])), added


def filler(number: int) -> str:
  """The name of a number that has no piece."""
  return f"<unused {number}>"


def _of_another_size(folder: ForeignFolder, tokens: int, size: int) -> InputError:
  return InputError(
    f"{folder.path} has a vocabulary of {tokens} tokens, which do not fit the {size} rows of the embedding: "
    "take all files from one folder"
  )


def _filled(folder: ForeignFolder, numbers: Mapping[str, int], size: int) -> tuple[str, ...]:
  """The pieces by their numbers; a number without a piece gets a name that no text has."""
  if not numbers or max(numbers.values()) >= size or size > 2 * len(numbers) + _ROUNDED:
    raise _of_another_size(folder, len(numbers), size)
  names = {number: piece for piece, number in numbers.items()}
  return tuple(names.get(number, filler(number)) for number in range(size))


def _part(file: Settings, name: str) -> Settings:
  value = file.value(name)
  if not isinstance(value, dict):
    raise file.wrong(name, "an object")
  return Settings(f"{file.path}, {name}", value)


def _numbers(path: str, pieces: Json, added: Json) -> dict[str, int]:
  """The pieces' numbers, those of tokens that were added later included."""
  wrong = InputError(f"{path} has no vocabulary of different tokens with different numbers: take another copy")
  if not isinstance(pieces, dict) or not isinstance(added, list):
    raise wrong
  found = dict(pieces)
  for token in added:
    if not isinstance(token, dict) or not isinstance(content := token.get("content"), str):
      raise wrong
    if found.setdefault(content, token.get("id")) != token.get("id"):
      raise wrong
  numbers = [*found.values()]
  whole = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
  if not whole or len(set(numbers)) < len(numbers) or not is_texts([*found]):
    raise wrong
  return found


def _pairs(path: str, merges: Json) -> list[tuple[str, str]]:
  """The merges, which are pairs, or texts with a space between the two."""
  wrong = InputError(f"{path} has something else than pairs of pieces: take another copy")
  if not isinstance(merges, list):
    raise wrong
  pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
  if not all(is_texts(pair) and len(pair) == 2 for pair in pairs):
    raise wrong
  return [(first, second) for first, second in pairs]


def _lines(folder: ForeignFolder, name: str) -> list[str]:
  try:
    return folder.bytes(name, LARGEST).decode().replace("\r\n", "\n").split("\n")
  except UnicodeDecodeError as error:
    raise InputError(f"{folder.path / name} is no text in UTF-8: take another copy") from error

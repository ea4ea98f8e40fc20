"""Lines with more tokens than the model can translate at once: they are refused, or translated in parts."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from transformer_jax.data.tagged import divided, is_empty
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import splitting
from transformer_jax.decoding.beam_search import SearchOptions, penalty
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

SPLIT, REFUSE = "split", "refuse"  # what to do with a line that is too long
_MOST_TAGS, _LONGEST_TAG = 8, 40  # tags of a warning, and characters of each


class Translation(NamedTuple):
  """One translation of a sentence.

  Attributes:
    text: the translation, without line breaks.
    score: `log_probability` divided by the length penalty; translations are ranked by it, except those of a line in
      parts.
    log_probability: log P(translation | sentence).
    tokens: the number of tokens, with the EOS.
  """

  text: str
  score: float
  log_probability: float
  tokens: int


class LineWarning(str):
  """A warning about a line, as a sentence.

  Attributes:
    line: the number of the line, from 1.
    what: the sentence without the number in front.
  """

  line: int
  what: str

  def __new__(cls, line: int, what: str) -> "LineWarning":
    warning = super().__new__(cls, f"line {line} {what}")
    warning.line, warning.what = line, what
    return warning

  def __reduce__(self) -> tuple[type, tuple[int, str]]:  # Python would make it again from the one sentence
    return type(self), (self.line, self.what)


class LanguageWarning(LineWarning):
  """A warning about a line that does not tell the language of its translation, though the model needs it."""


def parts(
  texts: Sequence[str],
  tokenizer: Tokenizer,
  longest: int,
  long: str,
  first: int,
  warn: Callable[[LineWarning], object],
  tags: Sequence[str],
) -> tuple[list[list[list[int]]], InputError | None]:
  """Encodes lines and splits those that are too long.

  Args:
    texts: the lines.
    tokenizer: the model's tokenizer.
    longest: the most tokens of a part, with its EOS.
    long: what to do with a line that has more, `SPLIT` or `REFUSE`.
    first: the number of the first line.
    warn: is called with a warning for each line that is split, or should have a tag and has none.
    tags: those of the model's target languages, if each line should begin with one; each part then gets it.

  Returns:
    The tokens of the parts of each line, each part with its EOS; a line without text, or whose text the vocabulary
    ignores, has no part. If a line is refused, only the lines before it, and the error.
  """
  found: list[list[list[int]]] = []
  for number, (text, tokens) in enumerate(_encoded(texts, tokenizer, longest), first):
    if has_no_text(text, tokens, tokenizer, tags):
      found.append([])
      continue
    check_language(text, tokenizer, tags, number, warn)
    if tokens is not None and len(tokens) < longest:
      found.append([[*tokens, EOS]])
      continue
    try:
      found.append(_parts_of_long(text, tokenizer, longest, long, number, warn, tags))
    except InputError as error:
      return found, error
  return found, None


def has_no_text(text: str, tokens: Sequence[int] | None, tokenizer: Tokenizer, tags: Sequence[str]) -> bool:
  """Whether a line has no text, or none that the vocabulary reads; its tokens are without EOS, and None if many."""
  head = tokenizer.head(text)
  if is_empty(text, tags) or (head and not text[len(head) :].strip()):
    return True
  # Tokens may be none, or only those of the code of a language, as a normalisation can delete characters.
  return tokens is not None and len(tokens) == (len(tokenizer.encode(head)) if head else 0)


def _parts_of_long(
  text: str,
  tokenizer: Tokenizer,
  longest: int,
  long: str,
  number: int,
  warn: Callable[[LineWarning], object],
  tags: Sequence[str],
) -> list[list[int]]:
  """The parts of a line that is too long; raises InputError if it is refused, or if its tag leaves no room for text."""
  too_long = f"has more than config.decode.max_source_length = {longest} tokens: "
  if long == REFUSE:
    raise InputError(f"line {number} {too_long}shorten it")
  found = _split(text, longest, tokenizer, tags)
  if _head(text, tokenizer, tags) and max(map(len, found), default=0) > longest:
    raise InputError(f"line {number} {too_long}its language's tag leaves too little room: raise the key")
  if found:
    warn(LineWarning(number, f"{too_long}it is translated in {len(found)} parts"))
  return found


def _encoded(texts: Sequence[str], tokenizer: Tokenizer, longest: int) -> Iterator[tuple[str, list[int] | None]]:
  """Each text and its tokens; None for one that must have more than `longest`, as no token spells so much of it."""
  short = [text if len(text) < longest * tokenizer.longest_piece else None for text in texts]
  known = iter(tokenizer.encode_batch([text for text in short if text is not None]))
  for text, kept in zip(texts, short, strict=True):
    yield text, None if kept is None else next(known)


def check_language(
  text: str, tokenizer: Tokenizer, tags: Sequence[str], number: int, warn: Callable[[LineWarning], object]
) -> None:
  """Warns of a line that begins with none of the tags, or of the vocabulary's codes, if there are several."""
  if tags and divided(text)[0].strip() not in tags:
    some = ", ".join(tag[:_LONGEST_TAG] for tag in tags[:_MOST_TAGS]) + (", ..." if len(tags) > _MOST_TAGS else "")
    warn(LanguageWarning(number, f"begins with none of {some}: its translation may be in any language"))
  elif not tags and len(codes := tokenizer.codes) > 1 and not tokenizer.head(text):
    some = codes[0][:_LONGEST_TAG]
    what = f"begins with no code of a language, such as {some}: its translation may be in any language"
    warn(LanguageWarning(number, what))


def _split(text: str, longest: int, tokenizer: Tokenizer, tags: Sequence[str]) -> list[list[int]]:
  """The tokens of a line's parts, each part with its EOS, and with the line's tag or code of a language, if any."""
  head = _head(text, tokenizer, tags)
  texts = splitting.split(text[len(head) :], longest - 1, lambda part: len(tokenizer.encode(head + part)))
  return [[*tokens, EOS] for tokens in tokenizer.encode_batch([head + text for text in texts])]


def _head(text: str, tokenizer: Tokenizer, tags: Sequence[str]) -> str:
  """The tag or code of a language at the beginning of a line, with the space behind it; another tag is text."""
  if not tags:
    head = tokenizer.head(text)
    return f"{head} " if head and text[len(head) :].startswith(" ") else head
  tag, _ = divided(text)
  return tag if tag.strip() in tags else ""


def joined(parts: list[list[Translation]], options: SearchOptions) -> list[Translation]:
  """Joins the translations of a line's parts: the best ones of all parts, the second ones, and so on.

  So the first one does not depend on how many are asked for. Each part is ranked by its own length penalty. The score
  is that of the whole line, so a later one may have a higher one.
  """
  if not parts:
    return [Translation("", 0.0, 0.0, 0)]
  if len(parts) == 1:
    return parts[0]
  whole = []
  for translations in zip(*parts, strict=False):
    log_probability = math.fsum(translation.log_probability for translation in translations)
    tokens = sum(translation.tokens for translation in translations)
    score = log_probability / penalty(options.penalty, options.length_penalty, float(tokens))
    whole.append(
      Translation(" ".join(translation.text for translation in translations), score, log_probability, tokens)
    )
  return whole


def different(translations: list[Translation]) -> list[Translation]:
  """The translations without those whose text came before."""
  first: dict[str, Translation] = {}
  for translation in translations:
    first.setdefault(translation.text, translation)
  return list(first.values())

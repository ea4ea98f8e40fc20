"""Lines with more tokens than the model can translate at once: they are refused, or translated in parts."""

import math
from collections.abc import Callable, Iterator, Sequence

from transformer_jax.data.tagged import divided, is_empty
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import splitting
from transformer_jax.decoding.beam_search import SearchOptions, length_penalty
from transformer_jax.decoding.line_warning import LineWarning, check_language
from transformer_jax.decoding.translation import Translation
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError

SPLIT, REFUSE = "split", "refuse"  # what to do with a line that is too long


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
    how = f"in {len(found)} parts" if found[1:] else "without the spaces at its ends"
    warn(LineWarning(number, f"{too_long}it is translated {how}"))
  return found


def _encoded(texts: Sequence[str], tokenizer: Tokenizer, longest: int) -> Iterator[tuple[str, list[int] | None]]:
  """Each text and its tokens; None for one that must have more than `longest`, as no token spells so much of it."""
  short = [text if len(text) < longest * tokenizer.longest_piece else None for text in texts]
  known = iter(tokenizer.encode_batch([text for text in short if text is not None]))
  for text, kept in zip(texts, short, strict=True):
    yield text, None if kept is None else next(known)


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
    score = log_probability / length_penalty(options.penalty, options.length_penalty, float(tokens))
    whole.append(
      Translation(" ".join(translation.text for translation in translations), score, log_probability, tokens)
    )
  return whole

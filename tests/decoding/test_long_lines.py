"""The parts of a line, and its translations from those of its parts."""

import pytest

from tests.data.letters import Letters
from transformer_jax.config import LengthPenalty
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.long_lines import REFUSE, SPLIT, has_no_text, joined, parts
from transformer_jax.decoding.translation import Translation


class Coded(Letters):
  """With the code of one language."""

  def head(self, text):
    return ">>fr<<" if text.startswith(">>fr<<") else ""

  def encode_batch(self, texts):
    heads = [self.head(text) for text in texts]
    rest = super().encode_batch([text[len(head) :] for text, head in zip(texts, heads, strict=True)])
    return [[9] * bool(head) + tokens for head, tokens in zip(heads, rest, strict=True)]


class Pairs(Letters):
  """A token for each character, but with `longest_piece` as if a token could spell two."""

  longest_piece = 2


def test_each_part_has_at_most_as_many_tokens_as_are_allowed_with_its_end():
  warnings = []
  texts = ["a" * size for size in (5, 6, 7, 12, 13)]
  found, error = parts(texts, Pairs(), 7, SPLIT, 1, warnings.append, [])
  assert [[len(tokens) for tokens in line] for line in found] == [[6], [7], [7, 2], [7, 7], [7, 7, 2]]
  assert error is None and [warning.line for warning in warnings] == [3, 4, 5]
  found, error = parts(texts, Pairs(), 7, REFUSE, 1, warnings.append, [])
  assert len(found) == 2 and "line 3 has more than config.decode.max_source_length = 7 tokens" in str(error)


def test_a_line_of_one_part_is_not_said_to_be_cut():
  """Without the spaces at its ends it is short enough."""
  warnings = []
  [line], error = parts([" ab" + 9 * " "], Pairs(), 7, SPLIT, 1, warnings.append, [])
  assert [len(tokens) for tokens in line] == [3] and error is None
  [warning] = warnings
  assert warning.line == 1 and str(warning).endswith("it is translated without the spaces at its ends")


@pytest.mark.parametrize(
  ("line", "tokens", "empty"),
  [
    (" ", [9], True),
    ("<2de> ", [7], True),
    ("\u00ad", [], True),
    ("a", [9], False),
    ("a", None, False),
    (">>fr<< ", [9], True),
    (">>fr<<\u00ad", [9], True),
    (">>fr<< a", [9, 11], False),
  ],
)
def test_what_has_no_text(line, tokens, empty):
  """Spaces, a tag alone, and characters that a vocabulary drops."""
  assert has_no_text(line, tokens, Coded(), ["<2de>"]) == empty


def test_a_tag_leaves_room_in_each_part():
  warnings = []
  texts = ["<2de> abc", "<2zh_Hant> abc", "<2xx> abcdefghi"]
  found, error = parts(texts[::2], Pairs(), 8, SPLIT, 1, warnings.append, ["<2de>", "<2zh_Hant>"])
  assert error is None and [[Pairs().decode(tokens[:-1]) for tokens in line] for line in found] == [
    ["<2de> a", "<2de> b", "<2de> c"],
    ["<2xx>", "abcdefg", "hi"],
  ]
  found, error = parts(texts, Pairs(), 8, SPLIT, 4, warnings.append, ["<2de>", "<2zh_Hant>"])
  assert len(found) == 1
  assert "line 5 has more than config.decode.max_source_length = 8 tokens: its language's tag" in str(error)


def part(text: str, log_probability: float, tokens: int) -> Translation:
  return Translation(text, log_probability / ((5 + tokens) / 6), log_probability, tokens)


def test_translations_of_a_line_in_parts_are_joined_by_rank():
  """The first one does not depend on how many there are, though the third has the best score, as it is the longest."""
  options = SearchOptions(beam_size=3, penalty=LengthPenalty.GNMT, length_penalty=1.0, n_best=3)
  first = [part("a", -1.0, 1), part("b", -1.25, 1), part("c", -1.5, 4)]
  second = [part("d", -1.0, 1), part("e", -1.5, 2), part("f", -1.75, 5)]
  found = joined([first, second], options)
  assert [translation.text for translation in found] == ["a d", "b e", "c f"]
  assert [translation.log_probability for translation in found] == [-2.0, -2.75, -3.25]
  assert [translation.tokens for translation in found] == [2, 3, 9]
  # Over (5 + 2) / 6, (5 + 3) / 6 and (5 + 9) / 6.
  assert [translation.score for translation in found] == pytest.approx([-1.714286, -2.0625, -1.392857], abs=1e-6)
  assert joined([first[:1], second[:1]], options) == found[:1]


def test_the_score_of_a_line_in_parts_has_the_penalty_of_the_options():
  options = SearchOptions(beam_size=3, penalty=LengthPenalty.FAIRSEQ, length_penalty=1.0, n_best=3)
  first = [part("a", -1.0, 1), part("b", -1.25, 1), part("c", -1.5, 4)]
  second = [part("d", -1.0, 1), part("e", -1.5, 2), part("f", -1.75, 5)]
  found = [translation.score for translation in joined([first, second], options)]
  assert found == pytest.approx([-2 / 2, -2.75 / 3, -3.25 / 9])

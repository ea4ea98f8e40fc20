"""The words of a text, which spaces separate, and the tokens that belong to them."""

from collections.abc import Sequence


def words_of(tokens: Sequence[str]) -> list[int | None]:
  """The number of the word that each token belongs to; None for a token of spaces alone.

  Words are what spaces separate, as in the text's `split(" ")` without empty parts. A text is the sequence of its
  characters.

  >>> words_of((" th", "ree", " ", "se", "ven"))
  [0, 0, None, 1, 1]
  >>> words_of("a  bc")
  [0, None, None, 1, 1]
  """
  words: list[int | None] = []
  number, between = -1, True
  for token in tokens:
    own = None
    for character in token:
      if character != " ":
        number += between
        own = number
      between = character == " "
    words.append(own)
  return words

"""Which weights a picture shows."""

from typing import NamedTuple


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

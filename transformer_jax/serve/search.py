"""The translation of the lines of several requests by one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_jax.decoding.line_warning import LineWarning
from transformer_jax.decoding.translation import Translation


class Options(NamedTuple):
  """The options of a search, as in `Translator.translate_lines`."""

  beam_size: int
  length_penalty: float
  n_best: int


class Found(NamedTuple):
  """The result of one request.

  Attributes:
    lines: the translations of each line, best first.
    warnings: the warnings about lines, whose numbers count the lines of this request.
  """

  lines: list[list[Translation]]
  warnings: list[LineWarning]


# (lines, options, a function that takes each warning) -> the translations of each line.
Translate = Callable[[Sequence[str], Options, Callable[[LineWarning], object]], list[list[Translation]]]


@dataclass(frozen=True)
class Search:
  """Translates the lines of requests that have the same options.

  A translation depends on its line alone, so that no request changes the answer of another.

  Attributes:
    translate: the function that translates lines.
    options: the options of all the requests.
  """

  translate: Translate
  options: Options

  def __call__(self, requests: Sequence[Sequence[str]]) -> list[Found]:
    warnings: list[LineWarning] = []
    found = self.translate([line for lines in requests for line in lines], self.options, warnings.append)
    answers, first = [], 0
    for lines in requests:
      end = first + len(lines)
      own = [LineWarning(warning.line - first, warning.what) for warning in warnings if first < warning.line <= end]
      answers.append(Found(found[first:end], own))
      first = end
    return answers

"""Constituency parsing (§6.3): a translation model's outputs as trees, and their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer_jax.data.trees import Outcome, Tree, delinearise
from transformer_jax.evaluation.parseval import Parseval, parseval
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted


@dataclass(frozen=True)
class ParseScores:
  """The scores of a model's parses.

  Attributes:
    scores: those of the trees, of which every sentence has one.
    outcomes: how many outputs had each `Outcome`, by its value.
  """

  scores: Parseval
  outcomes: dict[str, int]

  def to_dict(self) -> JsonObject:
    """The scores and counts as JSON values."""
    return self.scores.to_dict() | self.outcomes

  def __str__(self) -> str:
    outputs = ", ".join(f"{count:,} {outcome}" for outcome, count in self.outcomes.items())
    return f"{self.scores}\n{counted(self.scores.sentences, 'sentences')}; their outputs: {outputs}"


def score_outputs(pairs: Iterable[tuple[str, str]], outputs: Sequence[str]) -> ParseScores:
  """Scores outputs against linearised trees.

  Args:
    pairs: each sentence with its linearised tree.
    outputs: the model's output for each sentence.

  Raises:
    InputError: there are no sentences, or a pair has no tree of its sentence.
  """
  return score_parses([_tree_of(*pair) for pair in pairs], outputs)[0]


def score_parses(references: Sequence[Tree], outputs: Sequence[str]) -> tuple[ParseScores, list[Tree]]:
  """Scores outputs against trees, and gives the outputs' trees.

  Raises:
    InputError: there are no sentences.
  """
  found = [delinearise(output, tree.words) for output, tree in zip(outputs, references, strict=True)]
  trees, outcomes = [tree for tree, _ in found], [outcome for _, outcome in found]
  return ParseScores(parseval(trees, references), {each.value: outcomes.count(each) for each in Outcome}), trees


def _tree_of(sentence: str, target: str) -> Tree:
  words = sentence.split()
  tree, outcome = delinearise(target, words) if words else (None, Outcome.REFUSED)
  if tree is None or outcome is not Outcome.WHOLE:
    raise InputError(f"{one_line(target, 80)!r} is no tree of {one_line(sentence, 80)!r}: check the corpus")
  return tree

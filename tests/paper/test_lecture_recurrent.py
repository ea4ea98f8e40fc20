"""The claims of teaching material on recurrent networks, by the runs in `docs/results/cells` (`docs/lecture.md`)."""

import json
import statistics

from tests.paper.documented import DOCS
from tests.paper.lecture import assert_documented

LAYERS = (1, 2, 4)


def bleu(cell: str) -> list[float]:
  """The mean BLEU of a cell over the seeds, for each number of layers."""
  found = []
  for layers in LAYERS:
    runs = [json.loads(path.read_text()) for path in (DOCS / "results/cells").glob(f"{cell}-{layers}-*.json")]
    assert len(runs) == 2
    found.append(statistics.mean(run["test"]["scores"]["bleu"]["score"] for run in runs))
  return found


def written(scores: list[float]) -> str:
  return " ".join(f"{score:.1f}" for score in scores)


def test_lstms_are_better_than_simple_recurrent_networks():
  lstm, rnn = bleu("lstm"), bleu("rnn")
  assert all(one > 5 * other for one, other in zip(lstm, rnn, strict=True))
  numbers = f"1 2 4 {written(lstm)} {written(rnn)}"
  assert_documented(test_lstms_are_better_than_simple_recurrent_networks, "holds", numbers)


def test_deeper_networks_are_not_better_at_equal_parameters_and_time():
  lstm, gru = bleu("lstm"), bleu("gru")
  for one, two, four in (lstm, gru):
    assert one > two > four
  numbers = f"2014 1,000 1 2 4 {written(lstm)} {written(gru)}"
  test = test_deeper_networks_are_not_better_at_equal_parameters_and_time
  assert_documented(test, "holds corrected", numbers)

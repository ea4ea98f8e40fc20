"""The batches that the peers of benchmarks/training_speed.py are trained on, and its table."""

import json
from collections import Counter

import pytest

from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data import pipeline


@pytest.fixture
def training_speed(program):
  pytest.importorskip("tabulate")
  return program("training_speed")


def test_batches_have_each_pair_once_and_can_be_written(training_speed, tmp_path):
  words = ["ein", "zwei", "drei"]
  lines = [" ".join(words[: 1 + i % 3] * (1 + i % 5)) for i in range(53)]
  for language in ("en", "de"):
    (tmp_path / f"text.{language}").write_text("\n".join(lines) + "\n")
  data = DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), row_length=64)
  config = Config(data=data, train=TrainConfig(batch_tokens=97))
  tokenizer = pipeline.learn_tokenizer(data, 280)
  batches = json.loads(json.dumps(training_speed.sorted_batches(config, tokenizer)))
  for batch in batches:
    assert len(batch) * max(len(side) for pair in batch for side in pair) <= 97
  found = Counter(str(pair) for batch in batches for pair in batch)
  every = Counter(str([[*tokenizer.encode(line), 3]] * 2) for line in lines)
  assert found <= every and 40 < found.total() < 53  # the last batch, which is not full, is left out


@pytest.mark.parametrize(
  ("sides", "limits", "shares"),
  [
    (["ours, rows of 64", "ours, rows of 64, bfloat16", "torch"], ["XLA", "XLA, bfloat16"], [0.5, 0.25, None]),
    (["ours, rows of 64, bfloat16", "torch, bfloat16"], ["XLA, bfloat16"], [0.25, None]),
    (["ours, rows of 64", "ours, rows of 640"], ["XLA"], [0.5, None]),  # longer rows have other matmuls
  ],
)
def test_each_type_has_the_share_of_its_own_matmuls(training_speed, sides, limits, shares):
  answers = {side: [{"seconds": 4.0, "target_tokens": 7.0, "loss": 2.0}] * 5 for side in sides}
  seconds = {**{side: [4.0] * 5 for side in sides}, "XLA": [2.0] * 5, "XLA, bfloat16": [1.0] * 5}
  rows = training_speed.table(answers, seconds, limits)
  assert [row.get("matmuls / step") for row in rows[: len(sides)]] == shares


def test_a_speedup_is_by_seconds_per_token_in_the_same_round(training_speed):
  turns = {"ours": [(1.0, 100), (1.0, 100), (2.0, 100)], "torch": [(3.0, 150), (5.0, 100), (12.0, 200)]}
  answers = {
    name: [{"seconds": seconds, "target_tokens": tokens, "loss": 2.0} for seconds, tokens in of_side]
    for name, of_side in turns.items()
  }
  seconds = {name: [one for one, _ in of_side] for name, of_side in turns.items()} | {"XLA": [0.5, 0.5, 0.5]}
  ours, torch, _ = training_speed.table(answers, seconds, ["XLA"])
  assert ours["speedup of ours"] == 1
  assert torch["speedup of ours"] == pytest.approx(3)  # 2, 5 and 3
  assert torch["target tokens/s"] == pytest.approx(20)
  assert torch["95%"] == "2.000 to 5.000"

"""benchmarks/ablations.py: each row changes what the paper's row changes, and a row's numbers against those by hand."""

import dataclasses

import pytest

from transformer_jax.config import flags
from transformer_jax.paper.table3 import ROWS


@pytest.fixture
def ablations(program):
  return program("ablations")


def test_each_row_changes_the_fields_of_the_papers_row(ablations):
  for name, (keys, paper) in ablations.TABLE3.items():
    changed = {key.partition("=")[0].partition(".")[2] for key in keys}
    assert changed <= {*ROWS[paper].model, *ROWS[paper].train}, name


def test_each_row_is_a_config_that_differs_from_the_first_by_its_keys_alone(ablations):
  base = dataclasses.asdict(flags.read_config("multi30k:plain", {}))
  for name, model in ablations.models(1).items():
    keys = flags.read_keys([f"--config.{key}" for key in model.keys])
    config = dataclasses.asdict(flags.read_config("multi30k:plain", keys))
    differing = {
      f"{group}.{key}"
      for group in base
      if isinstance(base[group], dict)
      for key in base[group]
      if base[group][key] != config[group][key]
    }
    assert differing == {key.partition("=")[0] for key in model.keys}, name


def result(name, seed, bleu, perplexity):
  return {
    "model": name,
    "seed": seed,
    "parameters": {"total": 2_000},
    "metrics": [
      {"split": "validation", "step": 3, "perplexity": 1.0},
      {"split": "validation", "step": 5, "perplexity": perplexity},
    ],
    "test": {"scores": {"bleu": {"score": bleu}}},
  }


def test_a_row_is_compared_with_the_seeds_that_both_have(ablations):
  reference = [f"a b c d {i} e f g" for i in range(30)]
  wrong = [line.replace("c", "x") for line in reference]
  by_name = {
    "base": [result("base", 1, 40.0, 7.0), result("base", 2, 42.0, 8.0), result("base", 3, 99.0, 9.0)],
    "A-h1": [result("A-h1", 1, 39.0, 7.5), result("A-h1", 2, 40.0, 8.5)],
  }
  translations = {f"{name}-{seed}": text for name, text in (("base", reference), ("A-h1", wrong)) for seed in (1, 2, 3)}
  row = ablations.row("A-h1", by_name, translations, reference)
  assert row["difference"] == "-1.50"  # (39 - 40 + 40 - 42) / 2
  assert (row["mean BLEU"], row["BLEU of each seed"]) == ("39.50", "39.00, 40.00")
  assert row["validation perplexity"] == "7.50, 8.50"
  assert row["paper's difference"] == "-0.9 (A-h1)"
  assert float(row["p"]) < 0.01  # every sentence is worse
  assert float(ablations.row("A-h1", by_name, dict.fromkeys(translations, wrong), reference)["p"]) == 1.0
  first = ablations.row("base", by_name, translations, reference)
  assert (first["difference"], first["p"], first["change"]) == ("", "", "")

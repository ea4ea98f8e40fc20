"""Table 3: what each row changes, and how many parameters it has beside what the paper prints."""

import dataclasses
import math
import re
from pathlib import Path

import pytest

from configs import base, big, table3
from transformer_jax.analysis import requirements
from transformer_jax.config import serialization
from transformer_jax.paper import results
from transformer_jax.runtime.errors import InputError

VOCABULARY = 37_000
DOCS = Path(__file__).parents[2] / "docs" / "table3.md"

# At a vocabulary of 37,000; the rows that are not here have as many as base.
PARAMETERS = {
  "base": 63_045_632,
  "B-dk16": 55_967_744,
  "B-dk32": 58_327_040,
  "C-N2": 33_644_544,
  "C-N4": 48_345_088,
  "C-N8": 77_746_176,
  "C-d256": 26_816_512,
  "C-d1024": 163_815_424,
  "C-dff1024": 50_450_432,
  "C-dff4096": 88_236_032,
  "E-learned": 63_045_632 + 2 * 1024 * 512,  # a table of 1,024 positions on either side
  "big": 214_171_648,
}


def without_vocabulary(model):
  """The formula: attention d h (2 d_k + 2 d_v), feed-forward 2 d d_ff + d_ff + d, normalisation 2 d."""
  d, h = model.d_model, model.num_heads
  d_k, d_v = model.d_k or d // h, model.d_v or d // h
  attention, normalisation = d * h * (2 * d_k + 2 * d_v), 2 * d
  feed_forward = 2 * d * model.d_ff + model.d_ff + d
  encoder, decoder = attention + feed_forward + 2 * normalisation, 2 * attention + feed_forward + 3 * normalisation
  positions = 2 * model.max_positions * d if model.learned_positions else 0
  return model.num_layers * (encoder + decoder) + positions


def formula(model):
  return VOCABULARY * model.d_model + without_vocabulary(model)


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_formula_gives_the_parameters(row):
  model = table3.get_config(row).model
  assert model.vocab_size == VOCABULARY and formula(model) == PARAMETERS.get(row, PARAMETERS["base"])


# Other rows of the same kind run with the long tests.
@pytest.mark.parametrize(
  "row", [pytest.param(row, marks=() if row in ("base", "C-N2") else pytest.mark.long) for row in table3.ROWS]
)
def test_parameters(row):
  config = table3.get_config(row)
  assert requirements.parameters(config)["total"] == formula(config.model)


@pytest.mark.parametrize("row", ["A-h1", "B-dk16", "C-dff1024", "E-learned", "big"])
def test_parameters_of_one_layer(row):
  config = table3.get_config(row)
  config = dataclasses.replace(config, model=dataclasses.replace(config.model, num_layers=1))
  assert requirements.parameters(config)["total"] == formula(config.model)


def vocabularies(row):
  """The vocabularies with which the count rounds to what the paper prints: from, to."""
  millions, model = table3.ROWS[row].millions, table3.get_config(row).model
  d, rest = model.d_model, without_vocabulary(model)
  return math.ceil((millions * 10**6 - 500_000 - rest) / d), (millions * 10**6 + 499_999 - rest) // d


def test_no_vocabulary_gives_every_count_that_the_paper_prints():
  printed = [row for row in table3.ROWS if table3.ROWS[row].millions]
  ranges = {row: vocabularies(row) for row in printed}
  others = [ranges[row] for row in printed if row != "big"]
  assert (max(low for low, _ in others), min(high for _, high in others)) == (41_004, 41_208)
  assert ranges["big"] == (35_368, 36_344)
  assert len(printed) == 11


def test_the_docs_have_these_numbers():
  lines = DOCS.read_text().splitlines()
  for name, row in table3.ROWS.items():
    count = PARAMETERS.get(name, PARAMETERS["base"])
    low, high = (f"{n:,}" for n in vocabularies(name)) if row.millions else ("", "")
    cells = [name, f"{row.perplexity:.2f}", f"{row.bleu}", f"{row.millions or ''}", f"{count:,}"]
    cells.append(f"{low} to {high}" if row.millions else "")
    assert "| " + " | ".join(cells) + " |" in lines


KEYS = {
  "h": "model.num_heads",
  "dk": "model.d_k",
  "N": "model.num_layers",
  "d": "model.d_model",
  "dff": "model.d_ff",
  "drop": "model.dropout",
  "ls": "train.label_smoothing",
}


def test_a_row_has_the_value_that_its_name_tells():
  named = {row: re.fullmatch(r"[A-D]-([a-zA-Z]+)([\d.]+)", row) for row in table3.ROWS}
  assert [row for row, match in named.items() if not match] == ["base", "E-learned", "big"]
  for row, match in named.items():
    if match:
      assert serialization.flat(table3.get_config(row))[KEYS[match[1]]] == float(match[2])
  assert table3.get_config("E-learned").model.learned_positions


@pytest.mark.parametrize("row", table3.ROWS)
def test_a_row_differs_from_base_by_its_own_fields_only(row):
  ours, of_base = (serialization.flat(table3.get_config(name)) for name in (row, "base"))
  assert of_base == serialization.flat(base.get_config())
  changed = {key: value for key, value in ours.items() if value != of_base[key]}
  expected = {f"model.{key}": value for key, value in table3.ROWS[row].model.items()}
  expected |= {f"train.{key}": value for key, value in table3.ROWS[row].train.items()}
  assert changed == expected


def test_heads_share_the_width_in_rows_a_and_keep_it_in_rows_b():
  for row in (row for row in table3.ROWS if row.startswith("A")):
    model = table3.get_config(row).model
    assert model.num_heads * model.head_dim_k == model.num_heads * model.head_dim_v == 512
  for row, d_k in (("B-dk16", 16), ("B-dk32", 32)):
    model = table3.get_config(row).model
    assert (model.num_heads, model.head_dim_k, model.head_dim_v) == (8, d_k, 64)


def test_big_is_the_model_of_configs_big():
  row, config = table3.get_config("big"), big.get_config()
  assert row.model == config.model
  assert row.train == dataclasses.replace(config.train, save_every=row.train.save_every, keep=row.train.keep)


@pytest.mark.parametrize("row", table3.ROWS)
def test_a_config_has_the_values_that_the_paper_prints(row):
  assert results.values(table3.get_config(row)) == results.TABLE_3[row]


@pytest.mark.parametrize("direction", ["en-de", "en-fr"])
def test_base_and_big_have_them_too(direction):
  """§6.1: the big model for French has another dropout."""
  of_big = results.TABLE_3["big"] | ({"dropout": 0.1} if direction == "en-fr" else {})
  assert results.values(base.get_config(direction)) == results.TABLE_3["base"]
  assert base.get_config(direction).model.vocab_size == {"en-de": 37_000, "en-fr": 32_000}[direction]  # §5.1
  assert results.values(big.get_config(direction)) == of_big


def test_an_unknown_row_is_named():
  with pytest.raises(InputError, match="'B-dk8' is not a row of Table 3; there are base, A-h1"):
    table3.get_config("B-dk8")


@pytest.mark.parametrize(("direction", "pair"), [("en-de", "de-en"), ("en-fr", "fr-en")])
def test_base_and_big_translate_in_the_direction_of_their_name(direction, pair):
  """TensorFlow Datasets names the pairs the other way round."""
  for config in (base.get_config(direction), big.get_config(direction)):
    data = config.data
    assert f"{data.source_language}-{data.target_language}" == direction
    assert data.dataset == f"wmt14_translate/{pair}"
    assert (data.train, data.validation, data.test) == ("train", "validation", "test")

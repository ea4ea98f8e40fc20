"""benchmarks/many_languages.py: the keys of its runs against the configs they make, and its table by hand."""

import pytest

from transformer_jax.config import flags


@pytest.fixture
def many(program):
  return program("many_languages")


def test_the_directions_are_all_pairs_of_two_languages(many):
  assert len(many.DIRECTIONS) == len(set(many.DIRECTIONS)) == 12
  assert {language for direction in many.DIRECTIONS for language in direction.split("-")} == set(many.LANGUAGES)


def test_the_keys_make_the_config_of_the_direction(many):
  keys = flags.read_keys([f"--config.{key}" for key in many.single_keys("DIR", "cs-fr")])
  single = flags.read_config("multi30k:plain", keys)
  assert (single.data.source_language, single.data.target_language) == ("cs", "fr")
  assert not single.data.tags
  keys = flags.read_keys([f"--config.{key}" for key in many.many_keys("DIR")])
  config = flags.read_config("multi30k:plain", keys)
  assert config.data.tags
  assert config.data.train == "DIR/tok_train:en+de+fr+cs"
  assert config.model == single.model


def test_the_table_compares_where_both_models_translate(many, tmp_path):
  reference = [f"a b c d {i} e f g" for i in range(30)]
  for language in many.LANGUAGES:
    (tmp_path / f"tok_test_2016_flickr.{language}").write_text("".join(f"{line}\n" for line in reference))
  wrong = "".join(f"{line.replace('c', 'x')}\n" for line in reference)
  for direction in many.DIRECTIONS:
    (tmp_path / f"many.{direction}").write_text("".join(f"{line}\n" for line in reference))
  (tmp_path / "single.en-de").write_text(wrong)
  *rows, mean = many.table(str(tmp_path), tmp_path)
  assert [row["direction"] for row in rows] == many.DIRECTIONS
  compared = rows[0]
  assert (compared["direction"], compared["many"]) == ("en-de", "100.00")
  assert float(compared["single"]) < 60
  assert float(compared["p"]) < 0.01
  assert all((row["single"], row["p"]) == ("", "") for row in rows[1:])
  assert mean == {"direction": "mean of 1", "single": compared["single"], "many": "100.00"}

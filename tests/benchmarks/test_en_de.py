"""benchmarks/en_de.py: what is held out, and the reverse model's corpus, against cases by hand."""

import json
import lzma

import pytest

from transformer_jax.config import Config, serialization


@pytest.fixture
def en_de(program):
  return program("en_de")


@pytest.fixture
def texts(en_de, tmp_path):
  """Texts of a Tatoeba with 401 English sentences, of which two have two translations, and of tiny news sets."""
  tatoeba = [(f"en {number}", f"de {number}") for number in range(401)]
  tatoeba += [("en 80", "de other"), ("en 81", "de other"), ("en 3", "de news test")]
  write(tmp_path / "tatoeba_en-de" / "train", tatoeba)
  write(tmp_path / "tatoeba_en-de" / "valid", [("en test", "de test")])
  for number, name in enumerate(name for names in en_de.NEWS.values() for name in names):
    write(tmp_path / "wmt_news_en-de" / name, [(f"news {number}", f"neues {number}")])
  write(tmp_path / "wmt_news_en-de" / "newstest2014", [("news test", "de news test")])
  result = en_de.Texts(tmp_path / "text", en_de.LANGUAGES, en_de.CORPORA)
  en_de.write_texts(tmp_path, result)
  return result


def write(prefix, pairs):
  prefix.parent.mkdir(exist_ok=True)
  for side, language in enumerate(("en", "de")):
    text = "".join(f"{pair[side]}\n" for pair in pairs)
    prefix.with_name(f"{prefix.name}.{language}.xz").write_bytes(lzma.compress(text.encode()))


def test_every_80th_english_sentence_validates(texts):
  assert texts.lines("tatoeba", "valid", 0) == [f"en {number}" for number in range(0, 401, 80)]
  assert texts.lines("tatoeba", "valid", 1) == [f"de {number}" for number in range(0, 401, 80)]


def test_no_sentence_of_a_validation_or_test_text_is_in_the_training_text(texts):
  train = list(zip(*(texts.lines("tatoeba", "train", side) for side in range(2)), strict=True))
  validation = set(range(0, 401, 80))
  expected = [(f"en {number}", f"de {number}") for number in range(401) if number not in validation]
  # "en 80" validates and so does its other translation; "en 3" has a translation that is in a test text.
  assert train == [*expected, ("en 81", "de other")]


def test_news_sets_have_their_splits(en_de, texts):
  assert texts.lines("news", "train", 0) == [f"news {number}" for number in range(5)]
  assert texts.lines("news", "valid", 1) == ["neues 5"]
  assert texts.lines("news", "test", 0) == ["news test"]
  counts = json.loads((texts.folder / "counts.json").read_text())
  assert counts["tatoeba"] == {"train": 396, "valid": 6, "test": 1}


def test_the_corpus_of_back_translations_is_made_of_all_german(en_de, texts, monkeypatch):
  commands = []
  monkeypatch.setattr(en_de.compared, "train", lambda recipe, *_: commands.append(recipe))
  monkeypatch.setattr(en_de.children, "command", commands.append)
  en_de.back_translate(texts.folder.parent / "reverse", texts, ["news"], ["train.steps=7"])
  train, backtranslate = commands
  assert train.corpora == ("news",)
  assert train.keys == ("data.source_language=de", "data.target_language=en", "train.steps=7")
  german = (texts.folder / "german").read_text().splitlines()
  assert german == texts.lines("tatoeba", "train", 1) + texts.lines("news", "train", 1)
  assert backtranslate[backtranslate.index("--input") + 1] == str(texts.folder / "german")
  assert backtranslate[backtranslate.index("--output") + 1] == texts.prefixes(["back"], "train")


def test_the_columns_of_the_table(program):
  compared = program("compared")
  reference = ["the cat sat on the mat", "a dog ran in the park"]
  found = compared.columns(
    {"before": ["x y z w"] * 2, "better": reference}, reference, "13a", lambda lines, _: {"lines": str(len(lines))}
  )
  assert list(found) == [f"{title} {name}" for name in ("before", "better") for title in ("chrF2", "BLEU", "lines")]
  assert found["BLEU better"].startswith("100.00 (p 0.")
  assert "p" not in found["BLEU before"]
  assert found["lines before"] == "2"


def test_a_recipe_is_made_once_and_no_other_is_taken_for_it(program, en_de, texts, tmp_path, monkeypatch):
  compared, run, output = program("compared"), tmp_path / "run", tmp_path / "output"
  output.mkdir()
  called = []

  def train(flags):
    called.append("train")
    assert {"--config.train.steps=7", f"--config.data.train={texts.folder}/news.train"} <= {*flags}
    run.mkdir()
    (run / "config.json").write_text(json.dumps(serialization.to_dict(Config())))
    (run / "metrics.jsonl").write_text('{"step": 7, "split": "train"}\n')
    (run / "provenance.json").write_text("[]")

  def command(arguments, text):
    called.append(arguments[0])
    return text

  monkeypatch.setattr(compared.children, "train", train)
  monkeypatch.setattr(compared.children, "command", command)
  recipe = compared.Recipe("short", "en_de.py", ("news",), ("train.steps=7",))
  for _ in range(2):
    compared.make(recipe, run, texts, output)
  assert called == ["train", *["translate"] * 4]
  moved = recipe._replace(name="tuned", keys=(f"train.init_from={run.parent}/short",))
  (output / "tuned.json").write_text('{"recipe": {"corpora": ["news"], "keys": ["train.init_from=short"]}}')
  compared.make(moved, run, texts, output)  # the folder of the runs is no part of a recipe
  assert called == ["train", *["translate"] * 4]
  assert (output / "short.test.news.de").read_text().splitlines() == texts.lines("news", "test", 0)
  assert not (output / "short.recipe").exists()
  (output / "short.json").unlink()
  (output / "short.recipe").write_text('{"corpora": ["news"], "keys": ["train.steps=5"]}')  # stopped in the middle
  with pytest.raises(SystemExit, match=r"short\.recipe is of another recipe: choose another --name or --output"):
    compared.make(recipe, run, texts, output)
  assert called == ["train", *["translate"] * 4]
  (output / "short.json").write_text('{"recipe": {"corpora": ["news"], "keys": ["train.steps=7"]}}')
  for other in (recipe._replace(keys=("train.steps=11",)), recipe._replace(corpora=("tatoeba",))):
    with pytest.raises(SystemExit, match=r"short\.json is of another recipe: choose another --name or --output"):
      compared.make(other, run, texts, output)

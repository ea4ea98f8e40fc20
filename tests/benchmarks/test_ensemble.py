"""benchmarks/ensemble.py: its commands with a fake translator, and the row that the validation set chooses."""

import pytest
import sacrebleu

TEXTS = {
  "val": ["one two three four five six", "seven eight nine ten eleven"],
  "test_2016_flickr": ["a b c d e f g", "h i j k l", "m n o p q"],
}


@pytest.fixture
def ensemble(program):
  return program("ensemble")


@pytest.fixture
def commands(ensemble, tmp_path, monkeypatch):
  """The commands that are made; with a beam of 12 alone the translator is right, and else its first word is wrong."""
  for name, lines in TEXTS.items():
    for language in ("en", "de"):
      (tmp_path / f"tok_{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
  made = []

  def command(arguments, text):
    made.append(arguments)
    right = [*arguments[-2:]] == ["--beam-size", "12"]
    return text if right else "".join(f"x {line[2:]}\n" for line in text.decode().splitlines()).encode()

  monkeypatch.setattr(ensemble.children, "command", command)
  return made


def test_each_way_translates_each_text_once_with_all_models(ensemble, commands, tmp_path):
  for _ in range(2):
    for way in ensemble.WAYS:
      ensemble.row(way, str(tmp_path), ["A", "B"], tmp_path)
  models = ["translate", "--workdir", "A", "--workdir", "B"]
  assert commands == [[*models, *flags] for flags in ensemble.WAYS.values() for _ in TEXTS]


def test_bleu_and_the_choice(ensemble, commands, tmp_path):
  rows = [ensemble.row(way, str(tmp_path), ["A", "B"], tmp_path) for way in ensemble.WAYS]
  wrong = {
    name: sacrebleu.corpus_bleu([f"x {line[2:]}" for line in lines], [lines], tokenize="none").score
    for name, lines in TEXTS.items()
  }
  assert rows[0] == {
    "way": "beam 5",
    "validation BLEU": f"{wrong['val']:.2f}",
    "BLEU": f"{wrong['test_2016_flickr']:.2f}",
  }
  assert ensemble.chosen(rows, "beam") == {"way": "chosen: beam 12", "validation BLEU": "100.00", "BLEU": "100.00"}
  assert ensemble.chosen(rows, "MBR") == {**rows[2], "way": "chosen: MBR, beam 12, BLEU"}

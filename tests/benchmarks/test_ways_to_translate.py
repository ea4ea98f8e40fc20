"""benchmarks/ways_to_translate.py: its texts and commands with a fake translator, and its table against scores."""

from types import SimpleNamespace

import pytest

from transformer_jax.config import Config

TRAIN = ["a b c", "d e"]
TEST = ["one two three four five six", "seven eight nine ten eleven"]


@pytest.fixture
def ways(program):
  return program("ways_to_translate")


@pytest.fixture
def study(ways, tmp_path, monkeypatch):
  """A study whose commands are noted; `translate` repeats its input, and `rerank` has the first translation."""
  for name, lines in (("train", TRAIN), ("val", TEST[:1]), ("test_2016_flickr", TEST)):
    for language in ("en", "de"):
      (tmp_path / f"tok_{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
  made = ways.Study(str(tmp_path), tmp_path / "runs", tmp_path / "models", tmp_path / "output", ["train.steps=7"])
  made.runs.mkdir()
  made.output.mkdir()
  commands = []

  def command(arguments, text=b""):
    commands.append(arguments)
    return "".join(f"{line}\n" for line in TEST).encode() if arguments[0] == "rerank" else text

  def train(flags):
    commands.append(["train", *flags])
    made.runs.joinpath(flags[0].rpartition("/")[2]).mkdir()

  monkeypatch.setattr(ways.children, "command", command)
  monkeypatch.setattr(ways.children, "train", train)
  return made, commands


def make_all(ways, study):
  ways.translate_by_base(study, 1)
  ways.translate_by_all(study, 1)


def test_every_way_has_a_file_and_is_made_once(ways, study):
  made, commands = study
  make_all(ways, made)
  files = {file.name for file in made.output.iterdir()}
  assert files == {ways.path(made, way, 1).name for way in (*ways.WAYS, *ways.RERANKED, ways.BACK, ways.FORCED)}
  assert len(files) == len(ways.WAYS) + len(ways.RERANKED) + 2
  assert files == {ways.path(made, way, 1).name for way in (*ways.ALONE, *ways.OTHERS_TOO)}
  commands.clear()
  make_all(ways, made)
  assert commands == []


def test_base_alone_needs_no_other_model(ways, study):
  made, commands = study
  ways.translate_by_base(made, 1)
  assert {ways.path(made, way, 1) for way in ways.ALONE} == set(made.output.iterdir())
  assert {command[0] for command in commands} == {"translate", "rerank"}
  assert {argument for command in commands for argument in command if "base-" in argument} == {
    str(made.models / "base-1")
  }
  rows = ways.table(made, [1], ways.ALONE)
  assert [row["way"] for row in rows] == list(ways.ALONE)


def test_weights_are_tuned_on_the_validation_text_alone(ways, study):
  made, commands = study
  make_all(ways, made)
  rerank = [command for command in commands if command[0] == "rerank"]
  tuned, used = rerank[0::2], rerank[1::2]
  assert len(tuned) == len(used) == len(ways.RERANKED)
  for one, other in zip(tuned, used, strict=True):
    assert "--reference" in one
    assert "--reference" not in other
    assert one[one.index("--weights") + 1] == other[other.index("--weights") + 1]
    assert one[one.index("--n-best") + 1].endswith("val-1.nbest")
    assert other[other.index("--n-best") + 1].endswith("test_2016_flickr-1.nbest")


def test_the_other_models_learn_what_they_are_for(ways, study):
  made, commands = study
  make_all(ways, made)
  flags = {command[1].rpartition("/")[2]: command[2:] for command in commands if command[0] == "train"}
  assert list(flags) == ["reverse-1", "right-to-left-1", "language-model-1", "back-translations-1"]
  assert {"--config.data.source_language=de", "--config.data.target_language=en"} <= set(flags["reverse-1"])
  assert f"--config.data.train={made.runs}/reversed/tok_train" in flags["right-to-left-1"]
  assert (made.runs / "reversed" / "tok_train.de").read_text() == "c b a\ne d\n"
  assert (made.runs / "reversed" / "tok_train.en").read_text() == "a b c\nd e\n"
  assert f"--config.data.train={made.data}/tok_train.de" in flags["language-model-1"]
  corpora = [flag for flag in flags["back-translations-1"] if flag.startswith("--config.data.train=")]
  assert corpora[-1] == f"--config.data.train={made.data}/tok_train;{made.runs}/back-1"
  assert all("--config.train.steps=7" in each and "--config.train.seed=1" in each for each in flags.values())


def test_a_row_compares_all_seeds_with_the_first_way(ways):
  wrong = [line.replace("three", "x").replace("nine", "x") for line in TEST]
  row = ways.row("greedy", [TEST, wrong], [wrong, wrong], TEST)
  bleu = ways.bleu_of(wrong, TEST)
  assert row["BLEU of each seed"] == f"100.00, {bleu:.2f}"
  assert row["difference"] == f"{(100 - bleu) / 2:+.2f}"
  assert ways.row(ways.FIRST, [TEST], [TEST], TEST) == {
    "way": ways.FIRST,
    "BLEU of each seed": "100.00",
    "mean BLEU": "100.00",
  }
  assert ways.beginning(TEST[0]) == "one two three"


@pytest.mark.parametrize("kept", ["runs", "output"])
def test_results_of_another_model_are_not_taken_for_these(ways, study, monkeypatch, kept):
  made, _ = study
  base = SimpleNamespace(config=Config(), checkpoints=SimpleNamespace(last=7))
  monkeypatch.setattr(ways, "open_run", lambda path: base)
  for _ in range(2):
    ways.require_same_model(made, 1)
  elsewhere = made._replace(**{name: made.output.parent / f"new-{name}" for name in {"runs", "output"} - {kept}})
  for folder in (elsewhere.runs, elsewhere.output):
    folder.mkdir(exist_ok=True)
  with pytest.raises(SystemExit, match="is of another model or other keys: choose another --runs"):
    ways.require_same_model(elsewhere._replace(keys=["train.steps=11"]), 1)
  base.checkpoints.last = 11
  with pytest.raises(SystemExit, match="is of another model or other keys: choose another --runs"):
    ways.require_same_model(elsewhere, 1)
  ways.require_same_model(elsewhere, 2)


@pytest.mark.parametrize("name", ["greedy-1.de", "reverse-1"])
def test_results_without_settings_may_be_of_another_model(ways, study, monkeypatch, name):
  made, _ = study
  made.runs.mkdir(exist_ok=True)
  made.output.mkdir(exist_ok=True)
  base = SimpleNamespace(config=Config(), checkpoints=SimpleNamespace(last=7))
  monkeypatch.setattr(ways, "open_run", lambda path: base)
  (made.output / name).touch()
  with pytest.raises(SystemExit, match=r"settings-1\.json is of another model or other keys: choose"):
    ways.require_same_model(made, 1)
  ways.require_same_model(made, 2)

"""A run that `import` made is a run like any other: its attention, its export, and the runs that begin with it."""

import dataclasses
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.numpy

from tests.example_run import metrics_of
from tests.parity import exported, marian_folder
from transformer_jax import runs
from transformer_jax.__main__ import main
from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.decoding.translator import Translator
from transformer_jax.inside import attention
from transformer_jax.interchange.export import export
from transformer_jax.interchange.import_ import import_model
from transformer_jax.model.config import Activation, Start
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.runtime.errors import InputError

KINDS = ("of this project", "as OPUS-MT", "two vocabularies")
OPUS = {"attention_bias": True, "logits_bias": True, "activation": Activation.SWISH, "start": Start.PAD}
VOCABULARIES = {"source.model", "target.model", "pieces.json"}
PAIRS, STEPS = 2, 60


class Imported(NamedTuple):
  """A run, its export in the format `marian-hf`, the run that this was imported to, and sentence pairs."""

  original: Path
  folder: Path
  run: Path
  pairs: list[tuple[str, str]]


def opus_tokenizer(*, separate: bool) -> TokenizerPair:
  """SentencePiece models of two languages, with pieces numbered as OPUS-MT has them, and without a BOS."""
  sides = [("source",), ("target",)] if separate else [tuple(marian_folder.LANGUAGES)]
  lists = [PieceList(tuple(marian_folder.pieces(*side)), "<pad>", "<unk>", "</s>") for side in sides]
  models = map(marian_folder.sentencepiece_model, marian_folder.LANGUAGES)
  return TokenizerPair(*(ListedTokenizer(model, own) for model, own in zip(models, (lists[0], lists[-1]), strict=True)))


def model_of(kind: str) -> tuple[Tokenizer, dict]:
  """The tokenizer of a model, and its options."""
  if kind == "of this project":
    return exported.tokenizer(), {}
  pieces = opus_tokenizer(separate=kind == "two vocabularies")
  *source, target = pieces.vocab_sizes
  sizes = {"source_vocab_size": source[0], "share_embeddings": False} if source else {}
  return pieces, {"vocab_size": target, **sizes, **OPUS}


@pytest.fixture(scope="module", params=KINDS)
def imported(request, tmp_path_factory):
  folder = tmp_path_factory.mktemp("imported")
  pieces, options = model_of(request.param)
  config = exported.config(layer_norm_epsilon=1e-5)
  config = dataclasses.replace(config, model=dataclasses.replace(config.model, **options))
  params = exported.params_of(config)
  if "logits_bias" in params:
    params["logits_bias"][EOS] = 4  # so that translations end
  output = exported.export_of(config, params, folder, "marian-hf", pieces=pieces)
  import_model(output, folder / "imported", "marian-hf")
  known = [text for text in marian_folder.lines("target") if pieces.decode(pieces.encode(text)) == text]
  pairs = [*zip(marian_folder.lines("source"), sorted(known, key=len)[1:], strict=False)][:PAIRS]
  return Imported(folder / "run", output, folder / "imported", pairs)


of_opus = pytest.mark.parametrize("imported", KINDS[1:], indirect=True)


def test_the_export_gives_back_the_folder(imported, tmp_path):
  export(imported.run, tmp_path / "hf", "marian-hf")
  assert {path.name for path in tmp_path.glob("hf/*")} == {path.name for path in imported.folder.iterdir()}
  for path in imported.folder.iterdir():
    if path.suffix == ".safetensors":
      assert_same_bits(*(safetensors.numpy.load_file(each) for each in (path, tmp_path / "hf" / path.name)))
    elif path.name not in ("README.md", "tokenizer_config.json"):  # they tell the origin, and the longest input
      assert path.read_bytes() == (tmp_path / "hf" / path.name).read_bytes(), path.name


@of_opus
def test_a_format_with_a_sentencepiece_model_is_refused(imported, tmp_path):
  """At once and with nothing written: the numbers of these pieces are a list's."""
  message = "^the imported run does not number its pieces as .*: choose --to safetensors or marian-hf$"
  with pytest.raises(InputError, match=message):
    export(imported.run, tmp_path / "model", "stablehlo")
  assert not [*tmp_path.iterdir()]


def assert_same_bits(found, expected):
  assert found.keys() == expected.keys()
  for name, array in found.items():
    np.testing.assert_array_equal(array.view(np.int32), expected[name].view(np.int32), name)


@pytest.mark.long
def test_it_translates_and_attends_as_the_run_that_it_comes_from(imported):
  before, after = (Translator.load(path) for path in (imported.original, imported.run))
  sources = [source for source, _ in imported.pairs]
  texts = before.translate(sources, return_scores=True)
  assert after.translate(sources, return_scores=True) == texts and len({each.score for each in texts}) == PAIRS
  assert after.score(imported.pairs) == before.score(imported.pairs)
  found, expected = (
    attention.attention_of(runs.open(path), "last", *imported.pairs[0]) for path in (imported.run, imported.original)
  )
  assert found._replace(weights={}) == expected._replace(weights={})
  assert_same_bits(found.weights, expected.weights)
  model = runs.open(imported.run).model()
  assert list(found.target[:-1]) == model.tokenizer.pieces(model.tokenizer.encode(imported.pairs[0][1]))
  assert found.read == (model.tokenizer.pieces([model.config.model.start_token])[0], *found.target[:-1])


class Tuned(NamedTuple):
  """A run that began with an imported one, and the two files that it knows by heart."""

  run: Path
  source: Path
  target: Path


@pytest.fixture(scope="module")
def tuned(imported, tmp_path_factory):
  """Trained in two parts, and with its own tokenizers the second time."""
  folder = tmp_path_factory.mktemp("tuned")
  found = Tuned(folder / "run", folder / "text.aa", folder / "text.bb")
  for path, lines in zip(found[1:], zip(*imported.pairs, strict=True), strict=True):
    path.write_text("".join(f"{line}\n" for line in lines * 8))
  keys = {
    **{"data.corpus": "text", "data.train": folder / "text", "data.validation": folder / "text", "data.test": ""},
    **{"data.source_language": "aa", "data.target_language": "bb", "data.row_length": 32, "model.dropout": 0},
    **{"train.init_from": imported.run, "train.ema_decay": 0, "train.label_smoothing": 0, "train.batch_tokens": 128},
    **{"train.peak_learning_rate": 0.02, "train.warmup_steps": 10, "train.steps": 40, "train.save_every": 20},
    **{"evaluate.every": 20, "evaluate.sentences": 1, "decode.beam_size": 2, "decode.extra_length": 7},
  }
  assert main(["train", f"--workdir={found.run}", *(f"--config.{key}={value}" for key, value in keys.items())]) == 0
  assert main(["train", f"--workdir={found.run}", f"--config.train.steps={STEPS}"]) == 0
  return found


def exact_match(run: Path, text: Tuned, capfd) -> float:
  capfd.readouterr()
  argv = ["evaluate", "--workdir", run, "--source", text.source, "--reference", text.target, "--json"]
  assert main([*map(str, argv)]) == 0
  return json.loads(capfd.readouterr().out)["exact_match"]


@pytest.mark.long
@of_opus
def test_fine_tuning_learns_another_text(imported, tuned, capfd):
  before, after = runs.open(imported.run), runs.open(tuned.run)
  assert after.config.model == dataclasses.replace(before.config.model, dropout=0)
  assert {path.name for path in tuned.run.iterdir()} > VOCABULARIES
  [begun] = [entry["init_from"] for entry in after.provenance if "init_from" in entry]
  assert begun == {"run": str(imported.run), "step": 0, "imported": before.provenance[0]["imported"]}
  export(tuned.run, tuned.run.with_name("shared"), "safetensors")
  public = runs.open(tuned.run.with_name("shared"))
  assert str(imported.folder.parent) not in (public.path / "provenance.json").read_text()
  assert public.imported == before.imported | {"folder": imported.folder.name}
  for name in VOCABULARIES:
    assert (tuned.run / name).read_bytes() == (imported.run / name).read_bytes(), name
  assert [exact_match(run, tuned, capfd) for run in (imported.run, tuned.run)] == [0, 1]
  own = [numpy_by_name(run.model().params).get("own_source_embedding/table") for run in (before, after)]
  if own[0] is not None:  # the rows of pieces that the text lacks are as they were imported
    read = [PAD, EOS, *(token for text, _ in imported.pairs for token in before.tokenizer.source.encode(text))]
    assert_same_bits(*({"rows": np.delete(table, read, axis=0)} for table in own))
  scores = Translator.load(tuned.run).score(imported.pairs)
  mean = sum(score.log_probability for score in scores) / sum(score.tokens for score in scores)
  perplexities = [line["perplexity"] for line in metrics_of(tuned.run) if line["split"] == "validation"]
  assert perplexities[0] > perplexities[-1]
  np.testing.assert_allclose(perplexities[-1], np.exp(-mean), rtol=1e-5)  # packed rows begin as single sentences do


@pytest.mark.long
@of_opus
def test_an_average_is_of_a_fine_tuned_run(imported, tuned, tmp_path, capfd):
  mean = tmp_path / "mean"
  assert main(["average", f"--workdir={imported.run}", "--last=1", f"--output={mean}"]) == 2
  error = capfd.readouterr().err
  assert "no checkpoints to average: give a run that `train` made, such as one that begins with it" in error
  assert not mean.exists()
  assert main(["average", f"--workdir={tuned.run}", "--last=2", f"--output={mean}"]) == 0
  assert f"the mean of the checkpoints of steps {STEPS}, {STEPS - 20}" in capfd.readouterr().out
  found, *parts = (
    numpy_by_name(runs.open(path).model(step=step).params)
    for path, step in ((mean, "last"), (tuned.run, STEPS), (tuned.run, STEPS - 20))
  )
  for name, array in found.items():
    np.testing.assert_allclose(array, (parts[0][name] + parts[1][name]) / 2, atol=1e-6, err_msg=name)
  assert exact_match(mean, tuned, capfd) == 1
  export(mean, tmp_path / "hf", "marian-hf")
  page = (tmp_path / "hf" / "README.md").read_text()
  assert f"\nTrained by transformer_jax; the mean of the checkpoints of steps {STEPS}, {STEPS - 20}. Training" in page


@pytest.mark.long
@of_opus
def test_a_fine_tuned_run_is_exported_and_comes_back(imported, tuned, tmp_path):
  export(tuned.run, tmp_path / "hf", "marian-hf")
  for name in ("source.spm", "target.spm", *(path.name for path in imported.folder.glob("*vocab.json"))):
    assert (tmp_path / "hf" / name).read_bytes() == (imported.folder / name).read_bytes(), name
  page = (tmp_path / "hf" / "README.md").read_text()
  began = "Training began with parameters that were imported from a folder of the format marian-hf.\n"
  assert f"\nTrained by transformer_jax; the checkpoint of step {STEPS}. {began}" in page
  import_model(tmp_path / "hf", tmp_path / "again", "marian-hf")
  assert_same_bits(*(numpy_by_name(runs.open(path).model().params) for path in (tmp_path / "again", tuned.run)))
  translator = Translator.load(tmp_path / "again")
  assert translator.translate([source for source, _ in imported.pairs]) == [target for _, target in imported.pairs]

"""The page about an exported model: the run's scores, and what the other library does otherwise."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from tests.parity import exported
from transformer_jax import runs
from transformer_jax.config import Config, Corpus, LengthPenalty
from transformer_jax.interchange import ctranslate2, model_card, safetensors
from transformer_jax.interchange.export import export
from transformer_jax.interchange.import_ import import_model
from transformer_jax.runs.run import Model

LOG = [
  {"split": "train", "step": 7, "loss": 2.25, "perplexity": 9.5},
  {"split": "validation", "step": 3, "loss": 4.5, "perplexity": 90.0},
  {"split": "validation", "step": 5, "loss": 3.125, "perplexity": 22.5, "bleu": 13.75, "samples": [["a", "b", "c"]]},
  {"split": "validation", "step": 7, "loss": 4.25, "perplexity": 70.0, "bleu": 2.5},
]


def test_the_validation_of_the_checkpoint_is_in_the_page(tmp_path):
  """That of step 5: the numbers of its line, and those of no other."""
  config = exported.config(layer_norm_epsilon=1e-5)
  first = exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  assert "## Scores\n\nThe run folder has no validation of this checkpoint.\n" in (first / "README.md").read_text()
  (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOG))
  export(tmp_path / "run", tmp_path / "second", "marian-hf")
  page = (tmp_path / "second" / "README.md").read_text()
  scores = json.loads(page.split("## Scores\n\n```json\n")[1].split("```")[0])
  assert scores == {"step": 5, "loss": 3.125, "perplexity": 22.5, "bleu": 13.75}


@pytest.mark.parametrize(
  ("steps", "shown", "told"),
  [((3, 5, 7), 5, False), ((3, 7), 3, True), ((7,), None, False)],
)
def test_the_scores_are_of_the_checkpoint_or_of_one_before_it(tmp_path, steps, shown, told):
  """Here that of step 5, as `--step best` chooses one; the training went on."""
  config = exported.config(layer_norm_epsilon=1e-5)
  exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  lines = [{"split": "validation", "step": step, "loss": float(step)} for step in steps]
  (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
  export(tmp_path / "run", tmp_path / "second", "marian-hf")
  page = (tmp_path / "second" / "README.md").read_text().split("## Scores\n\n")[1].split("## Config")[0]
  assert page.startswith("They are of the last validation before this checkpoint.") == told
  assert ("The run folder has no validation of this checkpoint." in page) == (shown is None)
  if shown is not None:
    assert json.loads(page.split("```json\n")[1].split("```")[0]) == {"step": shown, "loss": shown}


@pytest.mark.parametrize(("epsilon", "told"), [(1e-5, False), (1e-6, True)])
def test_another_epsilon_is_told(tmp_path, capsys, epsilon, told):
  """MarianMTModel has 1e-5 built in. The command says it, and the page."""
  config = exported.config(layer_norm_epsilon=epsilon)
  folder = exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  note = "The epsilon of LayerNorm is always 1e-05 in MarianMTModel and 1e-06 in the run, so logits differ slightly.\n"
  assert capsys.readouterr().err == (note if told else "")
  assert ("\n\n" + note in (folder / "README.md").read_text()) == told


@pytest.mark.parametrize("to", ["marian-hf", "ctranslate2"])
@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({}, []),
    ({"penalty": LengthPenalty.GNMT}, ["With a beam the run's own search divides log P(Y) by ((5 + |Y|) / 6) ** 0.7."]),
    ({"penalty": LengthPenalty.GNMT, "beam_size": 1}, []),
    ({"patience": 2.0}, ["The run's own search has a patience of 2;"]),
  ],
)
def test_another_search_is_told(tmp_path, capsys, to, changes, told):
  """The other libraries have one length penalty, which is not the default here. The command says it, and the page."""
  if to == "ctranslate2":
    pytest.importorskip("ctranslate2")
  config = exported.config(layer_norm_epsilon=1e-5)
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, **changes))
  folder = exported.export_of(config, exported.params_of(config), tmp_path, to)
  lines = capsys.readouterr().err.splitlines()
  assert [line.startswith(start) for line, start in zip(lines, told, strict=True)] == [True] * len(told)
  assert all(f"\n\n{line}\n" in (folder / "README.md").read_text() for line in lines)


def test_the_program_of_a_model_with_tags_gives_one(tmp_path):
  config = exported.config(layer_norm_epsilon=1e-5)
  data = dataclasses.replace(config.data, corpus=Corpus.TEXT, train="a:en-de;b:en-fr", tags=True)
  config = dataclasses.replace(config, data=data)
  page = (exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf") / "README.md").read_text()
  assert "A sentence begins with the tag of its target language: `<2de>`, `<2fr>`.\n" in page
  assert '["<2de> A sentence."]' in page
  assert page.startswith('---\nlanguage: ["en", "de", "fr"]\n') and "\n# Transformer, en to de, en to fr\n" in page


def test_the_history_names_no_folder_of_this_machine():
  entry = {"time": "now", "imported": {"folder": "/home/a/b/model", "format": "x"}, "exported": {"run": "/home/a/run"}}
  found = safetensors._public(entry)
  assert found == {"time": "now", "imported": {"folder": "model", "format": "x"}, "exported": {"run": "run"}}


def test_the_page_tells_no_place_of_this_machine(tmp_path):
  config = exported.config(layer_norm_epsilon=1e-5)
  folder = exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  import_model(folder, tmp_path / "imported", "marian-hf")
  assert str(tmp_path) in (tmp_path / "imported" / "provenance.json").read_text()
  export(tmp_path / "imported", tmp_path / "again", "marian-hf")
  page = (tmp_path / "again" / "README.md").read_text()
  assert "## Provenance" in page and str(tmp_path) not in page


def test_the_program_for_ctranslate2_searches_as_the_run_does(tmp_path):
  config = exported.config()
  exported.export_of(config, exported.params_of(config), tmp_path, "safetensors")
  run = runs.open(tmp_path / "run")
  page = ctranslate2._card(run, run.model()).decode()
  assert "beam_size=3, patience=1,\n  length_penalty=0.7, max_decoding_length=78, max_input_length=0,\n" in page


@pytest.mark.parametrize(("longest", "rows"), [(61, 1026), (2003, 2003 + exported.EXTRA + 2)])
def test_ctranslate2_has_positions_for_1026_tokens_or_more(longest, rows):
  config = exported.config()
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, max_source_length=longest))
  found = ctranslate2._positions(Model(config, {}, exported.tokenizer(), 0), {})
  shapes = {name: table.shape for name, table in found.items()}
  assert shapes == {"encoder/positions": (rows, 22), "decoder/positions": (rows, 22)}


@pytest.mark.parametrize(
  "changes",
  [{"penalty": LengthPenalty.GNMT, "length_penalty": 0.0}, {"patience": 0.0}, {"patience": 2.0, "beam_size": 1}],
)
def test_nothing_is_told_of_a_search_that_is_the_same(changes):
  assert model_card.search_notes(dataclasses.replace(exported.config().decode, **changes)) == []


@pytest.mark.parametrize(("changes", "shown"), [({"patience": 2.0}, 2), ({"patience": 0.0, "beam_size": 1}, 1)])
def test_the_program_for_ctranslate2_has_the_patience_of_the_run(tmp_path, capsys, changes, shown):
  config = exported.config()
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, **changes))
  exported.export_of(config, exported.params_of(config), tmp_path, "safetensors")
  run = runs.open(tmp_path / "run")
  assert f", patience={shown}," in ctranslate2._card(run, run.model()).decode()
  assert "patience of 0" not in capsys.readouterr().err


def test_the_page_tells_that_training_began_with_another_run():
  history = [{"data": "a text", "init_from": {"run": "/home/a/run", "step": 3}}]
  run = SimpleNamespace(provenance=history, imported=None, averaged=None)
  found = model_card._origin(run, Model(Config(), {}, None, 7))
  assert found == (
    "Trained by transformer_jax; the checkpoint of step 7. Training began with the parameters of another run."
  )

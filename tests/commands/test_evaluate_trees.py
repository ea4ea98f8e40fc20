"""`evaluate` of a run on parse trees."""

import json

import pytest

from tests.commands.lines import text
from tests.example_commands import save_run
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig
from transformer_jax.data import grammar
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.trees import linearise, read_trees, symbols
from transformer_jax.decoding.translation import Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import ModelConfig
from transformer_jax.tasks.parsing import score_parses

TREES = [grammar.tree_of(number) for number in range(4)]
SENTENCES = [" ".join(tree.words) for tree in TREES]
# Of the first sentence its tree, of the second a broken one, of the third another's, of the fourth none.
OUTPUTS = [linearise(TREES[0]), linearise(TREES[1])[:-20], linearise(TREES[0]), ""]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  targets = [linearise(tree) for tree in TREES]
  config = Config(
    data=DataConfig(corpus=Corpus.GRAMMAR, target_language="tree"),
    model=ModelConfig(vocab_size=312, num_layers=1, d_model=8, d_ff=13, num_heads=2),
    decode=DecodeConfig(beam_size=2, extra_length=3, max_source_length=16),
  )
  tokenizer = SentencePieceTokenizer.learn([*SENTENCES, *targets], 312, symbols=symbols(targets))
  folder = tmp_path_factory.mktemp("run")
  save_run(folder, config, tokenizer, steps=[0])
  return folder


@pytest.fixture
def files(tmp_path, monkeypatch):
  (tmp_path / "words").write_text(text(SENTENCES))
  (tmp_path / "trees").write_text(text(map(str, TREES)))

  def translate_lines(self, lines, **options):
    assert list(lines) == SENTENCES
    return [[Translation(output, 0.0, 0.0, 1)] for output in OUTPUTS]

  monkeypatch.setattr(Translator, "translate_lines", translate_lines)
  return tmp_path


def test_a_report_translates_no_trees(run, workdir, files, monkeypatch):
  monkeypatch.setattr(Translator, "translate_lines", None)
  page = files / "page.html"
  assert run("report", "--workdir", workdir, "--output", page)[0] == 0 and page.exists()
  status, _, err = run("report", "--workdir", workdir, "--output", page, "--data", files / "words")
  assert status == 2 and "does not translate: leave it out" in err[-1]


def test_evaluate_prints_f1_and_writes_trees(run, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "words", "--reference", files / "trees"]
  expected, trees = score_parses(TREES, OUTPUTS)
  assert expected.outcomes == {"whole": 1, "repaired": 2, "refused": 1}
  status, out, _ = run(*argv, "--hypotheses", files / "out", "--json")
  values = json.loads(out)
  assert (status, values.pop("seconds") >= 0) == (0, True)
  assert values == expected.to_dict()
  written = (files / "out").read_text().splitlines()
  assert list(read_trees(written, "out")) == trees and len(written) == 4
  _, out, _ = run(*argv)
  assert out.startswith(f"{expected}, parsed in ")


def test_what_is_no_tree_of_its_sentence_is_refused(run, workdir, files):
  argv = ["evaluate", "--workdir", workdir, "--source", files / "words", "--reference", files / "trees"]
  lines = [str(tree) for tree in TREES]
  for wrong, message in {
    lines[0]: f"line 2 is not one tree with the words of line 2 of {files / 'words'}",
    lines[1] * 2: "line 2 is not one tree",
    "": "line 2 is not one tree",
    "the dog": f"{files / 'trees'}, line 2: 'the' is not expected there",
  }.items():
    (files / "trees").write_text(text([lines[0], wrong, *lines[2:]]))
    status, _, err = run(*argv)
    assert status == 2 and message in err[-1]
  for flags in (["--lowercase"], ["--tokenize", "none"]):
    status, _, err = run(*argv, *flags)
    assert status == 2 and "--tokenize and --lowercase are for BLEU" in err[-1]
  for flags in (["--report"], ["--compare", files / "trees"]):
    status, _, err = run(*argv, *flags)
    assert status == 2 and "--report and --compare are for translations" in err[-1]

"""`rerank`: weights that are tuned and applied, the features of models, and lists that cannot be read."""

import json
from pathlib import Path

import numpy as np
import pytest
from etils import epath
from sacrebleu import BLEU

from tests.commands.lines import LINES, text
from tests.example_commands import read_with_tags
from transformer_jax.commands import rerank
from transformer_jax.decoding import n_best
from transformer_jax.decoding.translation import Probability, Translation
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation.scores import score
from transformer_jax.runtime.errors import InputError

LIST = """\
0 ||| das Haus steht hier ||| logp= -2 length= 4 ||| -0.5
0 ||| ein Haus steht da ||| logp= -3 length= 5 ||| -0.6
1 ||| a ||| b ||| c d ||| logp= -1 length= 3 ||| -0.3
1 ||| a ||| b ||| c ||| logp= -4 length= 4 ||| -0.4
2 |||  ||| logp= 0 length= 0 ||| 0
"""
REFERENCE = ["ein Haus steht da", "a ||| b ||| c", ""]


@pytest.fixture
def files(tmp_path):
  (tmp_path / "list").write_text(LIST)
  (tmp_path / "reference").write_text(text(REFERENCE))
  return ["rerank", "--n-best", tmp_path / "list", "--weights", tmp_path / "weights"]


def test_weights_are_tuned_and_applied(run, files, tmp_path):
  status, out, _ = run(*files, "--reference", tmp_path / "reference")
  first = ["das Haus steht hier", "a ||| b ||| c d", ""]
  assert status == 0
  assert out.startswith(
    f"BLEU (13a, cased): {score(first, REFERENCE).bleu:.2f} of the first of each list, 100.00 of the best"
  )
  weights = json.loads((tmp_path / "weights").read_text())
  assert list(weights) == ["score", "logp", "length"]
  assert run(*files) == (0, text(REFERENCE), [])
  (tmp_path / "weights").write_text(json.dumps(weights | {"score": 1.0, "length": 0.0, "logp": 0.0}))
  assert run(*files) == (0, text(first), [])


@pytest.mark.parametrize(
  ("flags", "options", "best", "named"),
  [
    ([], {}, 1, "13a, cased"),
    (["--tokenize", "none"], {"tokenize": "none", "force": True}, 0, "none, cased"),
    (["--lowercase"], {"lowercase": True}, 2, "13a, lowercased"),
    (
      ["--tokenize", "none", "--lowercase"],
      {"tokenize": "none", "lowercase": True, "force": True},
      2,
      "none, lowercased",
    ),
  ],
)
def test_weights_are_tuned_for_bleu_as_the_flags_read_texts(run, files, tmp_path, flags, options, best, named):
  """The first translation has the tokens between spaces, the second those of 13a, the third all but the case."""
  reference = "Das Haus, das am See steht, ist alt."
  texts = ["Das Haus, das am See steht, war neu.", "Das Haus , das am See steht , ist alt", reference.lower()]
  (tmp_path / "list").write_text(
    "".join(f"0 ||| {text} ||| x= {int(i == 1)} y= {int(i == 2)} ||| 0\n" for i, text in enumerate(texts))
  )
  (tmp_path / "reference").write_text(f"{reference}\n")
  status, out, _ = run(*files, "--reference", tmp_path / "reference", *flags)
  bleu = [BLEU(**options).corpus_score([text], [[reference]]).score for text in texts]
  assert np.argmax(bleu) == best
  assert status == 0 and out.startswith(
    f"BLEU ({named}): {bleu[0]:.2f} of the first of each list, {bleu[best]:.2f} of the best by the weights"
  )
  assert run(*files)[:2] == (0, f"{texts[best]}\n")


def test_models_give_their_log_probabilities(run, translator, workdir, files, tmp_path):
  found = [[Translation(text, -1.0, -2.0, 3) for text in ("ab de", "de ab", "c fg a", "h i")] for _ in LINES]
  (tmp_path / "list").write_text("".join(line for i, best in enumerate(found) for line in n_best.lines_of(i, best)))
  (tmp_path / "source").write_text(text(LINES))
  flags = [*files, "--source", tmp_path / "source"]
  flags += ["--forward", workdir, "--forward", workdir, "--reverse", workdir, "--right-to-left", workdir]
  names = ["score", "logp", "length", "forward", "forward2", "reverse", "right-to-left"]

  def chosen(name):
    (tmp_path / "weights").write_text(json.dumps({each: -float(each == name) for each in names}))
    status, out, _ = run(*flags)
    assert status == 0
    return out.split("\n")[:-1]

  def worst(key):
    """The weights are negative."""
    return [
      min(best, key=lambda each: key(line, each.text)).text if line.strip() else best[0].text
      for line, best in zip(LINES, found, strict=True)
    ]

  def log_prob(source, target):
    return translator.score([(source, target)])[0].log_probability

  assert chosen("forward2") == worst(log_prob)
  assert chosen("reverse") == worst(lambda line, other: log_prob(other, line))
  assert chosen("right-to-left") == worst(lambda line, other: log_prob(line, " ".join(other.split()[::-1])))


def test_the_words_of_a_reversed_translation_are_those_of_awk():
  """A space that does not break is part of a word."""
  pair = rerank._pair("right-to-left", "the source", "il a\t 10\u00a0000  euros ")
  assert pair == ("the source", "euros 10\u00a0000 a il")


@pytest.mark.parametrize(
  ("line", "message"),
  [
    ("0 ||| a ||| x= 1", "line 1 is not NUMBER |||"),
    ("0 ||| a ||| x= nan ||| 1", "line 1 is not NUMBER |||"),
    ("0 ||| a ||| x= 1 ||| inf", "line 1 is not NUMBER |||"),
    ("0 ||| a ||| 1 ||| 1", "line 1 is not NUMBER |||"),
    ("0 ||| a ||| x= b ||| 1", "line 1 is not NUMBER |||"),
    (
      "0 ||| a ||| x= 1 x= 2 ||| 1",
      "line 1 is not NUMBER ||| TRANSLATION ||| NAME= VALUE ... ||| SCORE with different",
    ),
    ("0 ||| a ||| x= 1 2 x2= 3 ||| 1", "line 1 is not NUMBER |||"),
    ("1 ||| a ||| x= 1 ||| 1", "line 1 is of sentence 1, but must be of sentence 0"),
    ("-1 ||| a ||| x= 1 ||| 1", "line 1 is of sentence -1, but must be of sentence 0"),
    ("0 ||| a ||| x= 1 ||| 1\n2 ||| a ||| x= 1 ||| 1", "line 2 is of sentence 2, but must be of sentence 1"),
    (
      "0 ||| a ||| x= 1 ||| 1\n1 ||| b ||| x= 1 ||| 1\n0 ||| c ||| x= 1 ||| 1",
      "line 3 is of sentence 0, but must be of sentence 2",
    ),
    ("0 ||| a |||  ||| 1\n0 ||| a ||| y= 1 ||| 1", r"line 2 has the features \['y'\], but line 1 has \[\]"),
    ("0 ||| a ||| x= 1 ||| 1\n0 ||| a ||| y= 1 ||| 1", r"line 2 has the features \['y'\], but line 1 has \['x'\]"),
  ],
)
def test_lists_that_cannot_be_read(line, message):
  with pytest.raises(InputError, match=message.replace("|||", r"\|\|\|")):
    n_best.read(line.split("\n"), "file")


def test_values_of_one_name_are_numbered():
  [[candidate]] = n_best.read(["0 ||| a b ||| lm= -1 -2 tm= 3 ||| 4"], "file")
  assert candidate == ("a b", {"lm": -1.0, "lm2": -2.0, "tm": 3.0}, 4.0)


def test_input_that_does_not_fit(run, files, workdir, tmp_path):
  def error(*flags):
    status, out, err = run(*files, *flags)
    assert (status, out, len(err)) == (2, "", 1)
    return err[0]

  assert "--tokenize is none, but must be left out without --reference" in error("--tokenize", "none")
  assert "--lowercase is True, but must be left out without --reference" in error("--lowercase")
  assert "cannot read --weights" in error()
  (tmp_path / "weights").write_text('{"score": 1}')
  for booleans in ('{"score": true, "logp": 1, "length": 1}', '{"score": null, "logp": 1, "length": 1}'):
    (tmp_path / "weights").write_text(booleans)
    assert "is not an object of numbers: tune them with --reference" in error()
  (tmp_path / "weights").write_text('{"score": 1e308, "logp": -1e308, "length": 1e308}')
  assert "a sum of the weighted features is too large for a number: give smaller weights" in error()
  (tmp_path / "weights").write_text('{"score": 1}')
  assert "has weights of score, but the features are score, logp, length" in error()
  assert "--reverse needs the lines that were translated: give --source" in error("--reverse", workdir)
  (tmp_path / "reference").write_text("a\n")
  assert "has 1 line, but" in error("--reference", tmp_path / "reference")
  (tmp_path / "reference").write_text(text(REFERENCE))
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  model = ["--source", tmp_path / "source", "--forward", workdir, "--reference", tmp_path / "reference"]
  for name in ("score", "forward"):
    (tmp_path / "list").write_text(LIST.replace("length=", f"{name}="))
    assert f"has a feature {name!r}, which is the name of one of this command's own" in error(*model)
  (tmp_path / "list").write_text(LIST)
  for name in ("list", "reference", "source"):
    before = (tmp_path / name).read_text()
    again = [*files[:4], tmp_path / name, "--reference", tmp_path / "reference", "--source", tmp_path / "source"]
    status, out, [err] = run(*again)
    assert (status, out) == (2, "") and "is a file that is read: give another one" in err
    assert (tmp_path / name).read_text() == before
  status, _, [err] = run(*files[:4], tmp_path / "no" / "weights", "--reference", tmp_path / "reference")
  assert status == 2 and "weights cannot be written: give a file in a folder that can be" in err
  (tmp_path / "list").write_text("")
  assert "must be a file with translations" in error()


def test_no_model_computes_before_all_mistakes_are_told(run, workdir, files, tmp_path, monkeypatch):
  monkeypatch.setattr(rerank, "_log_probabilities", lambda *args: pytest.fail("a model computes"))
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  model = ["--source", tmp_path / "source", "--forward", workdir]
  (tmp_path / "weights").write_text('{"score": 1}')
  status, out, [error] = run(*files, *model)
  assert (status, out) == (2, "") and "the features are score, logp, length, forward: give" in error
  (tmp_path / "weights").write_text('{"score": 1, "logp": 0, "length": 0, "forward": 1, "reverse": 1}')
  status, out, said = run(*files, *model, "--reverse", "/nowhere")
  assert (status, out) == (2, "") and "/nowhere is not a run folder" in said[-1]


def test_one_sentence_that_is_too_long_does_not_stop_the_others(run, translator, workdir, files, tmp_path):
  """All translations of that sentence have the feature 0, so that the others choose among them."""
  long = "abcdefghij " * 40
  assert not translator.fits([("a", "b"), ("a", long)]) and translator.fits([("a", "b"), ("b", "a")])
  (tmp_path / "list").write_text(LIST.replace("ein Haus steht da", long.strip()))
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  (tmp_path / "weights").write_text('{"score": 1, "logp": 0, "length": 0, "forward": 1e6}')
  status, out, said = run(*files, "--source", tmp_path / "source", "--forward", workdir)
  best = max(("a ||| b ||| c d", "a ||| b ||| c"), key=lambda one: translator.score([("b", one)])[0].log_probability)
  assert (status, out) == (0, text(["das Haus steht hier", best, ""]))
  expected = f"a sentence is too long for {workdir} in 1 list, the first of which is that of line 1: the model"
  assert any(line.startswith(expected) for line in said)


def test_the_tag_of_a_source_is_not_a_part_of_it():
  for source in ("<2de> a b", "a b", ">>de<< a b"):
    assert rerank._untagged(source) == "a b"
  for source in (">> The file << was lost", "  indented", ">>> a <<"):
    assert rerank._untagged(source) == source


@pytest.mark.parametrize(("flags", "expected"), [([], None), (["--batch-size", 3], 3)])
def test_models_compute_as_many_sentences_together_as_asked(
  run, translator, workdir, files, tmp_path, monkeypatch, flags, expected
):
  asked = []

  def score(pairs, *, batch_size):
    asked.append(batch_size)
    return [Probability(-1.0, 1)] * len(pairs)

  monkeypatch.setattr(translator, "score", score)
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  (tmp_path / "weights").write_text('{"score": 1, "logp": 0, "length": 0, "forward": 1}')
  status, _, _ = run(*files, "--source", tmp_path / "source", "--forward", workdir, *flags)
  assert (status, asked) == (0, [expected])


def test_only_a_model_of_several_languages_reads_tags(run, translator, workdir, files, tmp_path, monkeypatch):
  """The others never saw one; a line without one is told of."""
  asked = []
  monkeypatch.setattr(Translator, "score", lambda self, pairs, **_: asked.extend(pairs) or [Probability(0.0, 1)] * 5)
  (tmp_path / "list").write_text("".join(f"{i} ||| c ||| logp= -1 ||| -1\n" for i in range(3)))
  (tmp_path / "source").write_text(text(["<2de> a", ">>de<< b", ""]))
  flags = [*files, "--source", tmp_path / "source"]

  def sources(kind):
    asked.clear()
    (tmp_path / "weights").write_text(json.dumps({"score": 1.0, "logp": 1.0, kind: 1.0}))
    status, _, said = run(*flags, f"--{kind}", workdir)
    assert status == 0
    assert (f"--reverse {workdir} reads en and writes de" in said) == (kind == "reverse")
    return {pair[kind == "reverse"] for pair in asked}, [line for line in said if line.startswith("the tag or code")]

  left_out = (
    f"the tag or code of a language is left out in 2 lines of --source for {workdir}, whose config.data.tags is false"
  )
  for kind in ("forward", "reverse", "right-to-left"):
    assert sources(kind) == ({"a", "b"}, [left_out] * (kind != "reverse"))
  read_with_tags(monkeypatch)
  for kind in ("forward", "right-to-left"):
    found, said = sources(kind)
    assert found == {"<2de> a", ">>de<< b"}
    assert said == [
      f"the tag or code of a language, which {workdir} reads, is missing in 1 line of --source, the first of which is "
      "line 2"
    ]


def test_a_reverse_model_of_several_languages_is_refused(run, workdir, files, tmp_path, monkeypatch):
  read_with_tags(monkeypatch)
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  flags = [*files, "--source", tmp_path / "source", "--reference", tmp_path / "reference"]
  status, out, said = run(*flags, "--reverse", workdir)
  assert (status, out) == (2, "") and "its sources need a tag or code, which --reverse does not write" in said[-1]


def test_weights_never_take_the_place_of_a_file_of_a_models_run(run, workdir, files, tmp_path, monkeypatch):
  monkeypatch.setattr(rerank, "_features", lambda *_: pytest.fail("it goes on"))
  (tmp_path / "source").write_text(text(["a", "b", ""]))
  flags = ["--reference", tmp_path / "reference", "--source", tmp_path / "source", "--forward", workdir]
  status, out, [error] = run(*files[:4], Path(workdir) / "config.json", *flags)
  assert (status, out) == (2, "") and f"is a file of the run in {workdir}: give another one" in error


def test_weights_in_a_bucket_without_its_library(monkeypatch):
  def missing(self, mode):
    raise ImportError("no gcsfs")

  monkeypatch.setattr(type(epath.Path("gs://bucket/x")), "open", missing)
  with pytest.raises(InputError, match=r"cannot read gs://bucket/w: for gs:// install etils\[epath-gcs\]"):
    rerank._read_weights("gs://bucket/w")

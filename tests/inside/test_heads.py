"""What heads do: loops in place of arrays, and a head that the NumPy formulas leave out."""

import json
import math
import os
import sys

import jax
import numpy as np
import pytest

from tests.example_run import write_pairs
from tests.model.example import CONFIG, float64, random_params
from transformer_jax.commands.heads import _row
from transformer_jax.config import Config, EvaluateConfig
from transformer_jax.decoding.attention import Attention
from transformer_jax.evaluation import scores
from transformer_jax.inside.heads import Head, heads, lines_to_translate, masked, weight_statistics
from transformer_jax.model.special_tokens import BOS, EOS
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.recurrent.config import LuongConfig
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK

COMMAND = ("heads",)

SOURCE, TARGET = [5, 7, 30, 4, 9, 9, EOS], [11, 6, 8, 29, EOS]


def attention(seed, query, key):
  weights = np.random.default_rng(seed).random((2, 3, query, key), np.float32)
  weights[0, 0, 0] = np.eye(key)[0]  # weights of 0 have no entropy
  return Attention((), (), (), {"cross": weights / weights.sum(axis=-1, keepdims=True)})


def share(row, place):
  return row[place] if 0 <= place < len(row) else 0


def statistics_of_row(i, row):
  """One row of weights, number by number."""
  entropy = -sum(weight * math.log2(weight) for weight in row if weight)
  distance = sum(weight * abs(k - i) for k, weight in enumerate(row))
  return entropy, distance, share(row, i - 1), share(row, i), share(row, i + 1)


def test_statistics_are_means_over_all_queries():
  texts = [attention(0, 5, 7), attention(1, 3, 2)]
  found = weight_statistics(iter(texts))
  assert {kind: statistics.shape for kind, statistics in found.items()} == {"cross": (2, 3, 5)}
  for layer in range(2):
    for head in range(3):
      rows = [(i, row.tolist()) for text in texts for i, row in enumerate(text.weights["cross"][layer, head])]
      expected = np.mean([statistics_of_row(i, row) for i, row in rows], axis=0)
      np.testing.assert_allclose(found["cross"][layer, head], expected, rtol=1e-6)


@jax.jit
def logits(params):
  model = Transformer(CONFIG)
  hidden = model.apply({"params": params}, np.array(SOURCE), np.array([BOS, *TARGET[:-1]]))
  return model.apply({"params": params}, hidden, method="logits")


@pytest.mark.parametrize(
  ("kind", "layer", "head", "call"), [("encoder", 1, 2, 5), ("decoder", 0, 1, 7), ("cross", 1, 0, 15)]
)
def test_a_masked_head_adds_nothing(kind, layer, head, call, monkeypatch):
  """`call` is the number of the head in the order in which the NumPy formulas compute heads."""
  params, plain, calls = random_params(Config(model=CONFIG), TASK), formulas.attention, []

  def without(q, k, v, mask):
    calls.append(1)
    return plain(q, k, v, mask) * (len(calls) != call + 1)

  monkeypatch.setattr(formulas, "attention", without)
  expected = formulas.transformer(float64(params), SOURCE, TARGET)
  np.testing.assert_allclose(logits(masked(params, kind, layer, head)), expected, atol=1e-4)
  assert np.abs(logits(params) - expected).max() > 1e-2


def test_the_picture_has_each_number():
  """Also where BLEU is gained, and where a kind has other heads than another."""
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.heads_picture import bleu_lost

  lost = {("encoder", 1, 1): 12.34, ("encoder", 2, 1): -3.21, ("cross", 1, 1): -0.01, ("cross", 2, 1): 9.96}
  lost |= {("decoder", 1, 1): 2.5}  # which has one layer, so that a second one has no number
  figure = bleu_lost([Head(*place, *[0.5] * 5, value, 0.0) for place, value in lost.items()])
  shown = [[text.get_text() for text in axis.texts] for axis in figure.axes]
  assert shown == [["12.3", "-3.2"], ["0.0", "10.0"], ["2.5"]]
  for axis in figure.axes:
    for text in axis.texts:
      assert text.get_color() == ("white" if float(text.get_text()) > 7 else "black")


def measured(translator, params, pairs):
  """BLEU of characters, and the loss per target token: the end of a sentence is one more than its pieces."""
  translator.params = params
  translations = translator.translate([source for source, _ in pairs])
  bleu = scores.score(translations, [target for _, target in pairs], tokenize="char", lowercase=True).bleu
  tokens = sum(len(translator._tokenizer.encode(target)) + 1 for _, target in pairs)
  return bleu, -sum(pair.log_probability for pair in translator.score(pairs)) / tokens


def test_what_is_lost_without_a_head(translator, monkeypatch):
  """BLEU is lost and loss is added, not the other way round, and afterwards the parameters are what they were."""
  monkeypatch.setattr(translator._config, "evaluate", EvaluateConfig(tokenize="char", lowercase=True))
  monkeypatch.setattr(translator, "params", translator.params)  # which come back at the end
  pairs = [("cab", "GgGgG"), ("a", "GG ab")]  # of a letter that the random model writes
  whole, found = translator.params, heads(translator, pairs)
  head = next(found)
  found.close()
  jax.tree.map(np.testing.assert_array_equal, translator.params, whole)
  bleu, loss = measured(translator, whole, pairs)
  without_bleu, without_loss = measured(translator, masked(whole, "encoder", 0, 0), pairs)
  assert abs(bleu - without_bleu) > 1 and abs(loss - without_loss) > 1e-3
  assert head[:3] == ("encoder", 1, 1) and head.bleu_lost == pytest.approx(bleu - without_bleu)
  assert head.loss_added == pytest.approx(without_loss - loss, rel=1e-3)


def write(folder, pairs):
  return write_pairs(folder / "text", pairs)


@pytest.mark.long
def test_the_command(run, translator, tmp_path):
  pytest.importorskip("matplotlib")
  pairs = [("ab cd", "cd"), ("", "ab cd")]
  before = jax.tree.map(np.array, translator.params)
  counts = []
  expected = list(heads(translator, pairs, counts.append))
  jax.tree.map(np.testing.assert_array_equal, before, translator.params)
  assert sum(counts) == lines_to_translate(translator, pairs) == 2 * 7
  assert [head[:3] for head in expected] == [(kind, 1, n) for kind in ("encoder", "decoder", "cross") for n in (1, 2)]
  assert any(head.loss_added for head in expected)
  data = write(tmp_path, [*pairs, ("x", "y")])
  status, out, [err] = run("--data", data, "--sentences", 2, "--json", "--output", tmp_path / "out")
  assert status == 0 and str(tmp_path / "out" / "heads.png") in err
  assert [json.loads(line) for line in out.split("\n")[:-1]] == [head._asdict() for head in expected]
  assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["heads.png", "heads.svg"]
  status, out, err = run("--data", data, "--sentences", 2)
  header, *rows = out.split("\n")[:-1]
  assert (status, err, len(rows), {len(row) for row in rows}) == (0, [], 6, {len(header)})


def test_mistakes_are_one_sentence(run, tmp_path, monkeypatch):
  data = write(tmp_path, [("ab", "cd"), ("ab" * 99, "cd")])
  status, out, [err] = run("--data", data, "--sentences", 0)
  assert (status, out) == (2, "") and "--sentences is 0, but must be positive" in err
  status, _, [err] = run("--data", data)
  assert status == 2 and "pair 2 has a sentence of" in err
  assert run("--data", data, "--sentences", 10**20)[::2] == (status, [err])
  status, _, [err] = run("--data", data, "--output", "gs://bucket/x")
  assert status == 2 and "--output gs://bucket/x is in a bucket" in err
  (tmp_path / "file").write_text("")
  status, _, [err] = run("--data", data, "--output", tmp_path / "file")
  assert status == 2 and "must be a folder: it is a file" in err
  (tmp_path / "kept").mkdir()
  with monkeypatch.context() as patch:
    patch.setattr(os, "access", lambda path, mode: path != tmp_path / "kept")
    status, out, [err] = run("--data", data, "--output", tmp_path / "kept")
  assert (status, out) == (
    2,
    "",
  ) and f"--output is {tmp_path / 'kept'}, but must be a folder that you may write to" in err
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  status, out, [err] = run("--data", data, "--output", tmp_path / "out")
  assert (status, out) == (2, "") and "pip install 'transformer_jax[pictures]'" in err


def test_only_a_transformer_has_heads_to_mask(translator, monkeypatch):
  monkeypatch.setattr(translator._config, "model", LuongConfig())
  with pytest.raises(InputError, match="the run has a luong model"):
    next(heads(translator, [("ab", "cd")]))


def test_without_pairs_there_is_nothing_to_measure(translator):
  with pytest.raises(InputError, match="no sentence pair"):
    next(heads(translator, []))


def test_a_row_of_the_table_has_the_numbers_in_the_order_of_its_header():
  head = Head("cross", 3, 2, 1.5, 0.25, 0.1, 0.2, 0.3, -4.5, 0.0625)
  assert _row(head).split() == ["cross", "3", "2", "1.500", "0.250", "0.100", "0.200", "0.300", "-4.50", "0.0625"]


def test_a_cell_of_the_picture_is_of_its_head():
  pytest.importorskip("matplotlib")
  from transformer_jax.inside.heads_picture import bleu_lost

  lost = {("cross", layer, head): 10.0 * layer + head for layer in (1, 2) for head in (1, 2, 3)}
  [axis] = bleu_lost([Head(*place, *[0.5] * 5, value, 0.0) for place, value in lost.items()]).axes
  columns, rows = ([tick.get_text() for tick in ticks] for ticks in (axis.get_xticklabels(), axis.get_yticklabels()))
  shown = {}
  for text in axis.texts:
    x, y = text.get_position()
    shown[rows[round(y)], columns[round(x)]] = text.get_text()
  assert shown == {(str(layer), str(head)): f"{value:.1f}" for (_, layer, head), value in lost.items()}
  assert axis.images[0].get_array().tolist() == [[11, 12, 13], [21, 22, 23]]

"""The paper as a contract: every check passes, fails where the code is broken, and names what exists."""

import ast
import dataclasses
import functools
import importlib
import json
import math
import operator
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from tests import broken
from transformer_jax.__main__ import main
from transformer_jax.data import grammar, trees
from transformer_jax.decoding import beam_search, translator
from transformer_jax.evaluation import parseval, scores
from transformer_jax.model import (
  attention,
  dropout,
  embedding,
  feed_forward,
  masking,
  positional_encoding,
  sublayer,
  transformer,
)
from transformer_jax.paper import contract, parsing, report, results, tiny
from transformer_jax.paper.statement import Deviation, Statement, require_close, require_equal
from transformer_jax.paper.table4 import PARSERS
from transformer_jax.runtime import devices
from transformer_jax.tasks import token_prediction, translation
from transformer_jax.training import loss, optimizer, step

ROOT = Path(__file__).parents[2]
STATEMENTS = {statement.check.__name__: statement for statement in contract.STATEMENTS}


def test_names_differ_and_sections_are_in_order():
  assert len(STATEMENTS) == len(contract.STATEMENTS)
  sections = [[int(number) for number in statement.section.split(".")] for statement in contract.STATEMENTS]
  assert sections == sorted(sections)
  assert {number for number, *_ in sections} == {3, 4, 5, 6}


# Statements whose check compiles a model or traces one of the paper's size.
LONG = {
  *("rows_a", "rows_b", "rows_c", "rows_d", "dropout_in_training", "dropouts_differ", "one_update"),
  *("search_with_the_model", "longest_output", "one_token_at_a_time", "whole_model", "precision", "equation_1"),
  *("one_width", "path_lengths", "encoder", "decoder", "encoder_decoder_attention", "dropout_of_sublayers"),
  *("restricted_attention", "early_end", "row_e", "initial_values", "parser", "parser_search"),
}


@pytest.mark.parametrize(
  "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in STATEMENTS]
)
def test_the_code_keeps_the_statement(name):
  assert STATEMENTS[name].failure() is None


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_code_that_a_statement_names_exists(name):
  file, inside = STATEMENTS[name].code.split(": ")
  assert (ROOT / "transformer_jax" / file).is_file()
  module = importlib.import_module("transformer_jax." + file.removesuffix(".py").replace("/", "."))
  # A field without a default is no attribute of its class, so that none of these is named.
  found = operator.attrgetter(inside)(module)
  assert getattr(found, "__module__", module.__name__) == module.__name__  # and is not imported there


@functools.cache
def names_in(file):
  tree = ast.parse((ROOT / file).read_text())
  return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_test_that_a_statement_names_exists(name):
  file, test = STATEMENTS[name].test.split("::")
  assert test in names_in(file)


def test_the_docs_are_what_the_command_prints(capsys):
  assert main(["fidelity", "--markdown"]) == 0
  assert capsys.readouterr().out == (ROOT / "docs" / "fidelity.md").read_text(), (
    "run `python -m transformer_jax fidelity --markdown > docs/fidelity.md`"
  )


def without_scale(query, key, mask):
  scores = jnp.einsum("qhd,khd->hqk", query, key)
  return jnp.where(mask[None], jax.nn.softmax(jnp.where(mask[None], scores, -1e30)), 0)


def another_base(positions, d_model):
  angles = positions[..., None] * 1000.0 ** (-jnp.arange(0, d_model, 2) / d_model).reshape(
    (1,) * positions.ndim + (-1,)
  )
  return jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).reshape(*positions.shape, d_model)


def halves(positions, d_model):
  """All sines, then all cosines, as in the authors' own code."""
  exact = SINUSOIDS(positions, d_model)
  return jnp.concatenate([exact[..., 0::2], exact[..., 1::2]], axis=-1)


def pre_norm(self, x, y, *, deterministic):
  return x + self.norm(self.dropout(y, deterministic=deterministic))


def on_the_residual(self, x, y, *, deterministic):
  return self.norm(self.dropout(x + y, deterministic=deterministic))


def without_dropout(self, x, y, *, deterministic):
  return self.norm(x + y)


def without_target(logits, targets, valid, eps):
  """eps is shared by all pieces but the target."""
  sums, pieces = TOKEN_SUMS(logits, targets, valid, 0.0), logits.shape[1]
  return dataclasses.replace(sums, loss=sums.loss * (1 - eps - eps / (pieces - 1)) - jnp.sum(logits) * eps / pieces)


def unscaled(key, x, rate):
  return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x, 0)


def one_step_late(d_model, warmup_steps, peak=None):
  return lambda count: SCHEDULE(d_model, warmup_steps, peak)(count - 1)


SINUSOIDS, TOKEN_SUMS, SCHEDULE = positional_encoding.sinusoids, loss.token_sums, optimizer.inverse_square_root
WINDOW = masking.window_mask


# What is broken, and the check that must see it.
CASES = [
  (attention, "attention_weights", without_scale, "equation_1"),
  (attention, "attention_weights", without_scale, "scale"),
  (attention, "attention_weights", without_scale, "encoder"),
  (masking, "causal_mask", lambda length: jnp.ones((length, length), bool), "causal"),
  (masking, "causal_mask", lambda length: jnp.tri(length, k=-1, dtype=bool), "whole_model"),
  (masking, "window_mask", lambda query, key, radius: jnp.ones((query, key), bool), "restricted_attention"),
  (masking, "window_mask", lambda query, key, radius: WINDOW(query, key, radius - 1), "restricted_attention"),
  (masking, "segment_mask", lambda q, k: jnp.ones((len(q), len(k)), bool), "packed_pairs_are_alone"),
  (sublayer.Sublayer, "output", pre_norm, "residual_and_normalisation"),
  (sublayer, "layer_norm", lambda config: nn.LayerNorm(epsilon=1e-5), "residual_and_normalisation"),
  (sublayer.Sublayer, "output", on_the_residual, "dropout_comes_before_the_residual"),
  (sublayer.Sublayer, "output", without_dropout, "dropout_of_sublayers"),
  (transformer.Transformer, "_layer_input", lambda self, x, deterministic: x, "dropout_of_embeddings"),
  (embedding, "embed", lambda table, tokens: table[tokens], "embeddings_are_scaled"),
  (positional_encoding, "sinusoids", another_base, "sinusoids"),
  (positional_encoding, "sinusoids", another_base, "wavelengths"),
  (positional_encoding, "sinusoids", another_base, "a_shift_is_linear"),
  (positional_encoding, "sinusoids", halves, "sinusoids"),
  (positional_encoding, "sinusoids", lambda p, d: jnp.zeros((*p.shape, d)), "only_positions_know_the_order"),
  (transformer.Transformer, "decode", broken.decoder_sees_all, "only_positions_know_the_order"),
  (transformer.Transformer, "decode", broken.decoder_sees_one_source_token, "encoder_decoder_attention"),
  (translation, "decoder_input", lambda target, positions, start=None: target, "shifted_right"),
  (translation, "decoder_input", lambda target, positions, start=None: target, "causal"),
  (optimizer, "inverse_square_root", one_step_late, "equation_3"),
  (optimizer, "inverse_square_root", one_step_late, "warmup"),
  (dropout, "dropout", unscaled, "dropout_rate"),
  (dropout, "dropout", lambda key, x, rate: x, "dropout_comes_before_the_residual"),
  (loss, "token_sums", without_target, "label_smoothing"),
  (beam_search, "length_penalty", lambda kind, alpha, length: length**alpha, "length_penalty"),
  (beam_search, "length_penalty", lambda kind, alpha, length: length / 3, "beam_of_four"),
  (beam_search, "length_penalty", lambda kind, alpha, length: length / 3, "wide_beam_finds_the_best"),
  (transformer.Transformer, "_restricted", broken.causal_encoder, "whole_model"),
  (transformer.Transformer, "_restricted", broken.causal_encoder, "encoder_self_attention"),
  (transformer.Transformer, "encode", broken.unrestricted_encoder, "restricted_attention"),
  (feed_forward.FeedForward, "_dense", broken.zero_outer, "initial_values"),
  (sublayer, "layer_norm", lambda config: nn.LayerNorm(scale_init=nn.initializers.zeros), "initial_values"),
  (transformer.Transformer, "encode", broken.unscaled_source, "whole_model"),
  (attention, "attention_weights", broken.bfloat16_softmax, "precision"),
  (embedding, "output_logits", broken.bfloat16_logits, "precision"),
  (sublayer, "layer_norm", broken.bfloat16_statistics, "precision"),
  (sublayer, "layer_norm", broken.fast_variance, "residual_and_normalisation"),
  (dropout.Dropout, "make_rng", broken.one_key, "dropouts_differ"),
  (translation, "decoder_output", broken.no_dropout, "dropout_in_training"),
  (step, "train_step", broken.dropout_by_step, "dropout_in_training"),
  (step, "train_step", broken.dropout_by_row, "dropout_in_training"),
  (token_prediction, "chunked_sums", broken.padding_in_the_loss, "one_update"),
  (token_prediction, "chunked_sums", broken.no_smoothing, "one_update"),
  (devices, "sum_over_devices", broken.mean_of_devices, "one_update"),
  (step, "_accumulate", broken.mean_of_micro_batches, "one_update"),
  (optimizer, "optimizer", broken.usual_beta2, "adam"),
  (transformer, "continue_ancestors", broken.without_parents, "one_token_at_a_time"),
  (transformer, "continue_ancestors", broken.without_parents, "search_with_the_model"),
  (transformer.Transformer, "precompute_cross_attention", broken.visible_padding, "one_token_at_a_time"),
  (transformer.Transformer, "precompute_cross_attention", broken.visible_padding, "search_with_the_model"),
  (beam_search, "length_penalty", broken.without_alpha, "length_penalty"),
  (beam_search, "length_penalty", broken.without_alpha, "beam_of_four"),
  (translator.Translator, "_options", broken.options_without_alpha, "search_with_the_model"),
  (beam_search, "is_done", broken.stop_by_present_length, "early_end"),
  (results, "ROWS", broken.row("C-N4", model={"num_layers": 5}), "rows_c"),
  (results, "ROWS", broken.row("D-drop0.2", model={"dropout": 0.3}), "rows_d"),
  (results, "ROWS", broken.row("D-ls0.2", train={"label_smoothing": 0.1}), "rows_d"),
  (results, "ROWS", broken.row("A-h4", train={"steps": 50_000}), "rows_a"),
  (results, "ROWS", broken.row("big", train={}), "big"),
  (results, "ROWS", broken.row("base", model={"dropout": 0.0}), "base"),
  (scores, "_bleu", broken.lower_case, "bleu"),
  (scores, "_bleu", broken.other_words, "bleu"),
  (trees, "linearise", lambda tree: str(tree), "sentences_to_trees"),
  (trees, "delinearise", broken.without_repair, "sentences_to_trees"),
  (parsing, "SETTINGS", broken.setting("wsj", model={"num_layers": 6}), "parser"),
  (parsing, "SETTINGS", broken.setting("semi-supervised", model={"vocab_size": 37_000}), "parser"),
  (parsing, "SETTINGS", broken.setting("wsj", model={"vocab_size": 32_000}), "parser_vocabulary"),
  (trees, "symbols", lambda targets: sorted({*"".join(targets)}), "parser_vocabulary"),
  (grammar, "SENTENCES", grammar.SENTENCES | {"train": 20_000}, "parser_data"),
  (grammar, "tree_of", broken.right_branching, "parser_data"),
  (parsing, "SETTINGS", broken.setting("semi-supervised", decode={"extra_length": 50}), "parser_search"),
  (parsing, "SETTINGS", broken.setting("wsj", decode={"length_penalty": 0.6}), "parser_search"),
  (parseval, "constituents", broken.with_punctuation, "labelled_f1"),
  (parseval, "constituents", broken.each_span_once, "labelled_f1"),
  (parseval, "_SAME", {}, "labelled_f1"),
  (parsing, "PARSERS", PARSERS[:-1], "table_4"),
]
# Whose checks take seconds, so that one case of each is enough for most runs of the tests.
HEAVY = ("one_update", "dropout_in_training", "search_with_the_model")


def mark(i, case):
  again = case[-1] in HEAVY and case[-1] in [earlier[-1] for earlier in CASES[:i]]
  return pytest.mark.slow if again else pytest.mark.long


@pytest.mark.parametrize(
  ("module", "name", "other", "statement"),
  [pytest.param(*case, marks=mark(i, case)) for i, case in enumerate(CASES)],
)
def test_a_check_fails_where_the_code_is_broken(module, name, other, statement, monkeypatch):
  monkeypatch.setattr(module, name, other)
  reason = STATEMENTS[statement].failure()
  assert reason is not None and "\n" not in reason
  assert "Error: " not in reason, "it could not even run"


def three_statements(monkeypatch):
  def fails():
    raise AssertionError("one\n   reason")

  def cannot_run():
    raise ValueError("another")

  good = a_statement(check=lambda: None, deviation=Deviation("this", "that"))
  monkeypatch.setattr(contract, "STATEMENTS", [a_statement(check=fails), a_statement(check=cannot_run), good])


def a_statement(**changes):
  return dataclasses.replace(Statement("3.1", "a | b", "config.py: Config", "tests/a.py::b", lambda: None), **changes)


def test_a_failure_is_one_line_and_the_others_still_run(monkeypatch, capsys):
  three_statements(monkeypatch)
  assert main(["fidelity"]) == 1
  out, err = capsys.readouterr()
  lines = out.splitlines()
  assert [line[:4] for line in lines if line[:4].strip()] == ["FAIL", "FAIL", "pass"]
  assert "      FAIL: one reason" in lines and "      FAIL: ValueError: another" in lines
  assert "      deviation: this; because: that" in lines
  assert err == "transformer-jax: error: 2 of 3 statements do not hold; their lines say why\n"


def test_as_json(monkeypatch, capsys):
  three_statements(monkeypatch)
  assert main(["fidelity", "--json"]) == 1
  first, second, third = json.loads(capsys.readouterr().out)
  assert (first["passes"], first["reason"], first["deviation"]) == (False, "one reason", None)
  assert (second["passes"], second["reason"]) == (False, "ValueError: another")
  assert third == {
    "section": "3.1",
    "says": "a | b",
    "code": "config.py: Config",
    "test": "tests/a.py::b",
    "deviation": {"here": "this", "why": "that"},
    "passes": True,
    "reason": None,
  }


def test_all_hold_in_words(monkeypatch, capsys):
  monkeypatch.setattr(contract, "STATEMENTS", [a_statement()])
  assert main(["fidelity"]) == 0
  assert capsys.readouterr().out.splitlines()[-1] == "all 1 statements hold"


def test_a_bar_does_not_end_a_cell_of_a_table():
  assert r"a \| b" in report.markdown([a_statement()])


def test_either_form():
  assert main(["fidelity", "--json", "--markdown"]) == 2


def test_the_example_has_axes_that_differ():
  model = tiny.TINY
  sizes = [model.vocab_size, model.d_model, model.d_ff, model.num_heads, model.head_dim_k, model.head_dim_v]
  assert len({*sizes, tiny.ROW_LENGTH, len(tiny.SOURCE), len(tiny.TARGET)}) >= 8


@pytest.mark.parametrize("found", [[1.0, math.nan], [math.nan] * 2, [1.0, math.inf], [1.0], [[1.0, 2.0]], 1.0])
def test_nan_or_another_shape_is_not_close(found):
  require_close([1.0, 2.00001], [1.0, 2.0], "a thing")
  with pytest.raises(AssertionError, match="a thing"):
    require_close(found, [1.0, 2.0], "a thing")


def test_a_check_has_exact_matmuls():
  """By default an accelerator rounds their operands, and a check compares with float64."""
  statement = a_statement(check=lambda: require_equal(jax.config.jax_default_matmul_precision, "highest", "it"))
  assert statement.failure() is None and jax.config.jax_default_matmul_precision != "highest"

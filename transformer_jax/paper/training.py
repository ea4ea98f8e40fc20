"""§5, training: batches, the optimizer, regularization."""

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from transformer_jax.analysis import requirements
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.data import packing, pipeline
from transformer_jax.data.batches import Batches
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.model import dropout
from transformer_jax.model.config import ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.sublayer import Sublayer
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import float64, normal, parameters, random_params, row_logits, watched_dropouts
from transformer_jax.paper.statement import Deviation, Statements, require, require_close, require_equal
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TARGET, row
from transformer_jax.training import loss, optimizer

STATEMENTS = Statements()


@STATEMENTS.add(
  "5.1",
  "Byte-pair encoding with one vocabulary for source and target, of about 37,000 tokens for English and German; "
  "32,000 word pieces for English and French.",
  code="data/pipeline.py: learn_tokenizer",
  test="tests/data/test_pipeline.py::test_the_tokenizer_is_learned_on_both_sides",
  deviation=Deviation(
    "SentencePiece's byte-pair encoding of raw text, for French too; 4 special tokens and 256 bytes are among the "
    "tokens (the 32,000 are in `configs/base.py`, in which this check does not look)",
    "every text is encoded and given back exactly, without a tokenizer of words before it",
  ),
)
def shared_vocabulary():
  require_equal((ModelConfig().vocab_size, ModelConfig().share_embeddings), (37_000, True), "the vocabulary by default")
  with tempfile.TemporaryDirectory() as folder:
    for language, line in (("en", "abc"), ("de", "xyz")):
      (Path(folder) / f"text.{language}").write_text(f"{line}\n" * 7)
    data = DataConfig(corpus=Corpus.TEXT, train=f"{folder}/text", validation="")
    tokenizer = pipeline.learn_tokenizer(data, 272)
  require_equal(tokenizer.vocab_size, 272, "tokens")
  for text in ("abc", "xyz"):
    tokens = tokenizer.encode(text)
    require(len(tokens) < len(text), f"{text!r} of the training text has no piece of several letters")
    require_equal(tokenizer.decode(tokens), text, "a text that was encoded and decoded")


@STATEMENTS.add(
  "5.1",
  "A batch has about 25,000 source tokens and 25,000 target tokens.",
  code="config/experiment.py: TrainConfig.batch_tokens",
  test="tests/config/test_config.py::test_the_models_of_the_paper",
  deviation=Deviation("positions are counted, padding included", "one shape; packing leaves little padding"),
)
def batch_size():
  config = Config()
  row_length = config.data.row_length
  rows = pipeline.PackedRows(np.ones((503, 4, row_length), np.uint16), PackingReport(), "")
  batch = Batches(rows, config.train.batch_tokens // row_length, seed=0)[0].rows
  for name, side in (("source", packing.SOURCE), ("target", packing.TARGET)):
    positions = batch[:, side].size
    require(24_500 <= positions <= 25_500, f"a batch has {positions:,} positions for {name} tokens, not about 25,000")


@STATEMENTS.add(
  "5.1",
  "Sentence pairs of about the same length are batched together.",
  code="data/packing.py: pack",
  test="tests/training/test_step.py::test_packed_pairs_have_the_logits_that_each_has_alone",
  deviation=Deviation(
    "several pairs are packed into rows of one length, kept apart by masks; a pair that is longer than a row is left "
    "out and counted",
    "one shape, one compilation, little padding; a packed pair has the logits and the loss that it has alone",
  ),
)
def packed_pairs_are_alone():
  pairs = [([5, 3], [9, 7, 3]), (SOURCE, TARGET), (TARGET[2:], SOURCE[3:])]
  params = random_params(SHALLOW)
  packed, start = row_logits(SHALLOW, params)(row(*pairs)), 0
  for number, (source, target) in enumerate(pairs, 1):  # a row has its pairs in the order of the text
    alone = formulas.transformer(float64(params), source, target)
    require_close(packed[start : start + len(target)], alone, f"the logits of the packed pair {number}, alone")
    start += len(target)


@STATEMENTS.add(
  "5.2",
  "The base model is trained for 100,000 steps.",
  code="config/experiment.py: TrainConfig.steps",
  test="tests/config/test_config.py::test_the_models_of_the_paper",
)
def steps():
  require_equal(TrainConfig().steps, 100_000, "steps by default")


@STATEMENTS.add(
  "5.3",
  "Adam with beta_1 = 0.9, beta_2 = 0.98 and epsilon = 1e-9.",
  code="training/optimizer.py: optimizer",
  test="tests/training/test_optimizer.py::test_adam_with_the_schedule",
  deviation=Deviation(
    "a batch whose loss or gradients are not finite changes nothing and is counted",
    "one such batch would end the training",
  ),
)
def adam():
  config = Config(train=TrainConfig(warmup_steps=3))
  start, updates = normal(0, 5, 7), 5
  # Some as small as epsilon, so that it matters.
  gradients = normal(1, updates, 5, 7) * 10.0 ** np.random.default_rng(2).integers(-10, 1, size=(5, 7))
  rates = [formulas.learning_rate(step, 512, 3) for step in range(1, updates + 1)]
  params, update = jnp.asarray(start), optimizer.optimizer(config)
  state, of_gradient = update.init(params), jax.jit(update.update)
  expected = formulas.adam(float64(start), gradients, rates, 0.9, 0.98, 1e-9)
  for number, (gradient, after) in enumerate(zip(gradients, expected, strict=True), 1):
    change, state = of_gradient(jnp.asarray(gradient, jnp.float32), state, params)
    params = optax.apply_updates(params, change)
    require_close(params, after, f"the parameters after {number} updates", 1e-5)


@STATEMENTS.add(
  "5.3",
  "lrate = d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5), eq. 3.",
  code="training/schedule.py: inverse_square_root",
  test="tests/training/test_schedule.py::test_base_model",
)
def equation_3():
  for d_model, warmup_steps in ((512, 4000), (64, 13)):
    config = Config(model=ModelConfig(d_model=d_model), train=TrainConfig(warmup_steps=warmup_steps))
    schedule = optimizer.learning_rate(config)
    for number in (1, 2, 12, 13, 14, 3999, 4000, 4001, 100_000):
      ratio = float(jnp.asarray(schedule(number - 1))) / formulas.learning_rate(number, d_model, warmup_steps)
      require_close(ratio, 1, f"the learning rate of step {number} over that of eq. 3", 1e-5)


@STATEMENTS.add(
  "5.3",
  "The rate rises linearly for warmup_steps = 4000 steps and then falls with the inverse square root of the step.",
  code="training/optimizer.py: learning_rate",
  test="tests/paper/test_lecture.py::test_the_learning_rate_of_base_peaks_at_step_4000",
)
def warmup():
  rates = float64(optimizer.learning_rate(Config())(jnp.arange(16_000)))
  require_equal(int(np.argmax(rates)) + 1, 4000, "the step with the largest rate")
  require_close(rates[:4000] / rates[0], np.arange(1, 4001), "rates of the warmup over the first", 1e-2)
  require_close(rates[15_999] / rates[3999], 0.5, "the rate of step 16,000 over that of step 4,000")


def _active_dropouts(config: ModelConfig) -> list[tuple[str, ...]]:
  """The modules, by path, that drop something while training."""
  n = jnp.arange(5)
  mask = jnp.ones((5, 5), bool)
  key = jax.random.key(0, impl="threefry2x32")

  def train(params: Params) -> Any:
    rngs = {"dropout": key}
    return Transformer(config).apply({"params": params}, n, n, n, n, mask, mask, mask, deterministic=False, rngs=rngs)

  with watched_dropouts() as seen:
    jax.eval_shape(train, requirements.parameter_shapes(config))
  return [path for path, _, _ in seen]


def _require_dropouts(of_embeddings: bool, expected: list[tuple[str, ...]]) -> None:
  """Requires P_drop = 0.1 by default, and these dropouts alone: of the inputs of the stacks, or else of all layers."""
  model = ModelConfig(num_layers=2)
  require_equal(model.dropout, 0.1, "P_drop by default")
  found = [path for path in _active_dropouts(model) if (path == ("embedding_dropout",)) == of_embeddings]
  require_equal(sorted(found), sorted(expected), "where something is dropped")


@STATEMENTS.add(
  "5.4",
  "Dropout of P_drop = 0.1 is applied to the output of each sub-layer.",
  code="model/sublayer.py: Sublayer.output",
  test="tests/model/test_transformer.py::test_dropout_is_where_the_paper_says_and_different_everywhere",
  deviation=Deviation(
    "attention weights have no dropout: `config.model.attention_dropout` is 0 by default",
    "§5.4 names sub-layers and embeddings only; §6.3 speaks of dropout of attention too, without a rate",
  ),
)
def dropout_of_sublayers():
  require_equal(ModelConfig().attention_dropout, 0.0, "dropout of attention weights by default")
  sublayers = {"encoder": ("attention", "feed_forward"), "decoder": ("self", "cross", "feed_forward")}
  expected = [
    (side, f"layers_{i}", f"{name}_sublayer", "dropout")
    for side, names in sublayers.items()
    for i in range(2)
    for name in names
  ]
  _require_dropouts(False, expected)


@STATEMENTS.add(
  "5.4",
  "Dropout of P_drop = 0.1 is applied to the sums of embeddings and positions in both stacks.",
  code="model/transformer.py: Transformer._layer_input",
  test="tests/model/test_transformer.py::test_dropout_is_where_the_paper_says_and_different_everywhere",
)
def dropout_of_embeddings():
  _require_dropouts(True, [("embedding_dropout",)] * 2)


@STATEMENTS.add(
  "5.4",
  "Dropout comes before the residual sum and the normalisation.",
  code="model/sublayer.py: Sublayer.output",
  test="tests/model/test_sublayer.py::test_dropout_is_on_the_output_of_f_and_not_on_the_residual",
)
def dropout_comes_before_the_residual():
  module = Sublayer(ModelConfig(d_model=22, num_heads=1, dropout=0.5))
  x, y = normal(0, 13, 22), normal(1, 13, 22)

  def f(x: Any) -> jax.Array:
    return jnp.asarray(y)

  params = parameters(module, x, f, deterministic=True)

  @jax.jit
  def train(params: Any) -> Any:
    rngs = {"dropout": jax.random.key(0, impl="threefry2x32")}
    with watched_dropouts() as seen:
      return module.apply({"params": params}, x, f, deterministic=False, rngs=rngs), [each[1:] for each in seen]

  found, ((before, after),) = jax.device_get(train(params))
  require_close(before, y, "what something is dropped from, against the sub-layer's output")
  kept = float(np.mean(after != 0))
  require(0.3 < kept < 0.7, f"{kept:.0%} are kept, not half")
  expected = formulas.layer_norm(float64(params)["norm"], float64(x) + after)
  require_close(found, expected, "the normalised sum of the residual and what is kept")


@STATEMENTS.add(
  "5.4",
  "Dropout zeroes each element with the probability P_drop (and scales the others to keep the mean).",
  code="model/dropout.py: dropout",
  test="tests/model/test_dropout.py::test_zeros_have_the_rate_and_the_others_its_scale",
  deviation=Deviation(
    "the rate is rounded to a multiple of 2^-16, and the scale is that of the rounded rate",
    "half the random bits; the mean is exact",
  ),
)
def dropout_rate():
  x = 1 + np.abs(normal(0, 101, 211))
  for rate in (0.1, 0.3):
    found = np.asarray(dropout.dropout(jax.random.key(0, impl="threefry2x32"), jnp.asarray(x), rate))
    zeros = np.mean(found == 0)
    # Five standard deviations of the share.
    require_close(zeros, rate, f"the share of zeros at a rate of {rate}", 5 * (rate * (1 - rate) / x.size) ** 0.5)
    require_close(found[found != 0], x[found != 0] / (1 - rate), f"what is kept at a rate of {rate}", 1e-3)


@STATEMENTS.add(
  "5.4",
  "Label smoothing of epsilon_ls = 0.1.",
  code="training/loss.py: token_sums",
  test="tests/training/test_loss.py::test_cross_entropy_against_the_smoothed_distribution",
  deviation=Deviation(
    "1 - eps + eps/V on the target and eps/V on every other token; the paper gives no formula",
    "Szegedy et al. 2016, whom the paper cites",
  ),
)
def label_smoothing():
  require_equal(TrainConfig().label_smoothing, 0.1, "epsilon_ls by default")
  logits, targets, pieces = normal(0, 11, 13), np.arange(11), 13

  def smoothed(logits: jax.Array) -> jax.Array:
    return loss.token_sums(logits, jnp.asarray(targets), jnp.ones(11, bool), 0.1).loss

  # The gradient of a cross entropy is softmax(logits) - q, which gives away the distribution q.
  q = formulas.softmax(float64(logits)) - np.asarray(jax.jit(jax.grad(smoothed))(logits))
  expected = np.full((11, pieces), 0.1 / pieces)
  expected[np.arange(11), targets] += 1 - 0.1
  require_close(q, expected, "the distribution that the loss aims at", 1e-5)

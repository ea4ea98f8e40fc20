"""Programs compiled as users compile them compute what they compute without the kernels of a library.

XLA for CPUs gives products and reductions to the library YNNPACK, with what lies between them in one kernel. Some such
kernels of jaxlib 0.10.2 are wrong, for shapes and operands that no model here has:
https://github.com/jax-ml/jax/issues/39103. The other tests do without optimizations and so without these kernels.
"""

import dataclasses
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

from configs import bert, elmo, gpt, multi30k, rnn
from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.data.batches import Batch
from transformer_jax.decoding import buckets, programs
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.runtime import devices
from transformer_jax.training.step import eval_step, init_state, train_step
from transformer_jax.training.task import task_of

CONFIGS = {
  "transformer": multi30k.get_config(),
  **{kind: rnn.get_config(kind) for kind in ("plain", "bahdanau", "luong-dot", "luong-general", "luong-concat")},
  "gpt": gpt.get_config(),
  "bert": bert.get_config(),
  "elmo": elmo.get_config(),
}
WITHOUT_KERNELS = {"xla_cpu_experimental_ynn_fusion_type": ""}


@pytest.fixture(autouse=True)
def _as_users_compile():
  before = jax.config.values["jax_disable_most_optimizations"]
  jax.config.update("jax_disable_most_optimizations", False)
  yield
  jax.config.update("jax_disable_most_optimizations", before)


def changed(config: Config, folder: Path, **model: Any) -> Config:
  """The config with a text of random words and some of its model changed."""
  generator = random.Random(0)
  words = ["".join(generator.choices("abcdefghij", k=generator.randint(1, 6))) for _ in range(2003)]
  lines = [" ".join(generator.choices(words, k=generator.randint(2, 20))) for _ in range(1009)]
  for language in ("en", "de"):
    (folder / f"text.{language}").write_text("".join(f"{line}\n" for line in lines))
  text = str(folder / "text") + ("" if config.model.translates else ".en")
  return dataclasses.replace(
    config,
    data=dataclasses.replace(config.data, train=text),
    model=dataclasses.replace(config.model, vocab_size=1009, **model),
  )


def compiled_programs(config: Config) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
  """What is compiled for a config, each with its arguments."""
  task = task_of(config.model)
  packed = task.packed_rows(config, config.data.train, task.learn_tokenizer(config))
  count = min(config.train.batch_tokens // config.data.row_length, len(packed.rows))
  rows = Batch(np.asarray(packed.rows[None, :count]), np.arange(count, dtype=np.int32)[None])
  state = init_state(config, task)
  for name, function, given in (("train", train_step, state), ("validate", eval_step, state.params)):
    step = jax.vmap(functools.partial(function, config, task), axis_name=devices.AXIS, in_axes=(None, 0), out_axes=None)
    yield name, step, (given, rows)
  if config.model.translates:
    generator = np.random.default_rng(0)
    sources = [[*generator.integers(4, 1009, size=length), EOS] for length in (1, 3, 7, 13, 29, 31, 31, 31)]
    options = programs.SearchOptions(5, config.decode.penalty, 1.0)
    search = functools.partial(programs.search, registry.module(config.model), options, slots=4, extra_length=7)
    yield "search", search, (state.params, buckets.pad(sources, 8, 32, PAD))


def compare(config: Config) -> None:
  for name, function, arguments in compiled_programs(config):
    lowered = jax.jit(function).lower(*arguments)
    ours, plain = lowered.compile(), lowered.compile(compiler_options=WITHOUT_KERNELS)
    assert "__ynn_fusion" not in plain.as_text()
    found, expected = ours(*arguments), plain(*arguments)
    if name == "train":  # the first moment is the gradient but for a factor
      found, expected = (optax.tree.get(state.optimizer, "mu") for state, _ in (found, expected))
    if name == "search":  # of hypotheses with equal scores either may be the best
      found, expected = found.scores, expected.scores
    # One of eight million ReLUs may open by rounding, which changes gradients by about 1 / sqrt(8e6) of them; and that
    # of a key's bias is all rounding, as it adds the same to all scores of a query.
    of_leaf, of_whole = (2e-3, 1e-6) if name == "train" else (1e-4, 0.0)
    whole = optax.tree.norm(expected)
    for (path, leaf), other in zip(jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(found), strict=True):
      error = np.linalg.norm(np.asarray(leaf, np.float64) - other)
      assert error <= of_leaf * np.linalg.norm(leaf) + of_whole * whole, (name, jax.tree_util.keystr(path))


@pytest.mark.long
def test_one_layer(tmp_path):
  compare(changed(multi30k.get_config("plain"), tmp_path, num_layers=1))


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_sizes_of_the_configs(tmp_path, name, dropout):
  """Without dropout the kernels are larger."""
  compare(changed(CONFIGS[name], tmp_path, **({} if dropout else {"dropout": 0.0})))

"""A run of a tiny model with random weights, to export, and what the model computes."""

import functools
import random
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from tests.model.example import random_params
from transformer_jax.config import Config, DecodeConfig, LengthPenalty
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.interchange.export import export
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.model.params import Params
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.model.transformer import Transformer
from transformer_jax.runs import params_file, run_folder
from transformer_jax.tasks.translation import TASK

VOCAB, EXTRA = 283, 17
# Options of a model with a vocabulary for each language.
SEPARATE = {"source_vocab_size": 277, "share_embeddings": False}


@functools.cache
def lines() -> list[str]:
  """Lines of a made-up language; some have letters and spaces that no other line has."""
  generator = random.Random(0)
  words = ["".join(generator.choices("abcdefgh", k=generator.randint(1, 5))) for _ in range(29)]
  return [" ".join(generator.choices(words, k=generator.randint(1, 5))) for _ in range(11)] + ["  two  é ", "x"]


@functools.cache
def tokenizer(*vocab_sizes: int) -> Tokenizer:
  """That of a model with these vocabularies; without sizes that of both languages."""
  sides = [SentencePieceTokenizer.learn(lines()[:11], size) for size in vocab_sizes or (VOCAB,)]
  return TokenizerPair(*sides) if len(sides) > 1 else sides[0]


def config(**options: Any) -> Config:
  """Two heads of 11, two layers, d_ff 29."""
  return Config(
    model=ModelConfig(vocab_size=VOCAB, num_layers=2, d_model=22, d_ff=29, num_heads=2, **options),
    decode=DecodeConfig(
      beam_size=3,
      length_penalty=0.7,
      penalty=LengthPenalty.FAIRSEQ,
      patience=1.0,
      extra_length=EXTRA,
      max_source_length=61,
    ),
  )


def params_of(config: Config) -> Params:
  """Random weights, with which translations end after 2 to 10 tokens.

  The position is left in the decoder's output, as what sub-layers add is small, and EOS is like a late position. PAD
  and BOS, which other libraries allow, are improbable.
  """
  factors = {"table": 0.4, "output/kernel": 0.3, "outer/kernel": 0.3}

  def scaled(path: Any, array: jax.Array) -> np.ndarray:
    name = "/".join(key.key for key in path)
    return np.array(array) * np.float32(next((factors[end] for end in factors if name.endswith(end)), 1))

  params = jax.tree_util.tree_map_with_path(scaled, random_params(config, TASK))
  table = params["own_output" if "own_output" in params else "target_embedding"]["table"]
  table[[PAD, BOS]] *= 0.2
  table[EOS] = 0
  table[EOS, 4:6] = 2, -2  # the sine and cosine of a wave of 33 positions
  return params


def export_of(
  config: Config, params: Params, folder: Path, to: str, *, pieces: Tokenizer | None = None, **options: str
) -> Path:
  """The folder of a model in a format; without `pieces` its tokenizer is that of this file."""
  run, output = folder / "run", folder / "model"
  if not run.exists():
    run.mkdir(parents=True)
    params_file.write(run, params, 5, Dtype.FLOAT32)
    pieces = pieces or tokenizer(*config.model.vocab_sizes)
    run_folder.begin_run(epath.Path(run), config, pieces, [{"time": "once", "data": "a text"}])
  export(run, output, to, **options)
  return output


def pairs(*vocab_sizes: int) -> tuple[list[list[int]], list[list[int]]]:
  """Tokens of sources and of targets, each with its EOS."""
  pieces = tokenizer(*vocab_sizes)
  sources, targets = (
    [[*tokens, EOS] for tokens in side.encode_batch(lines())] for side in (pieces.source, pieces.target)
  )
  return sources, targets[1:] + targets[:1]


def padded(rows: list[list[int]]) -> np.ndarray:
  longest = max(map(len, rows))
  return np.array([row + [PAD] * (longest - len(row)) for row in rows])


def our_logits(config: Config, params: Params, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
  """Our logits of each pair, `[target, vocab]`."""
  model = Transformer(config.model)  # pyright: ignore

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(None, 0, 0))
  def logits(params, source, target):
    hidden = model.apply({"params": params}, source, target)
    return model.apply({"params": params}, hidden, method="logits")

  inputs = [[config.model.start_token, *target[:-1]] for target in targets]
  found = logits(params, jnp.asarray(padded(sources)), jnp.asarray(padded(inputs)))
  return [np.asarray(rows)[: len(target)] for rows, target in zip(found, targets, strict=True)]


def log_probs(logits: list[np.ndarray], targets: list[list[int]]) -> list[np.ndarray]:
  """The log-probability of each token of the target, for each pair."""
  return [
    np.asarray(jax.nn.log_softmax(rows))[np.arange(len(target)), target]
    for rows, target in zip(logits, targets, strict=True)
  ]

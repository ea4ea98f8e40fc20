"""benchmarks/embedding_norms.py: norms and means token by token, from the parameters alone."""

import math

import numpy as np
import pytest

from tests.model.example import float64, options, random_params
from transformer_jax.config import Config
from transformer_jax.tasks.translation import TASK

SENTENCES = {"source": [[5, 5, 9, 3], [5, 3]], "target": [[2, 7, 7], [2, 11, 4, 7]]}


@pytest.mark.parametrize("share", [True, False])
def test_each_piece_counts_once_or_as_often_as_it_occurs(program, share):
  config = options(share_embeddings=share)
  params = random_params(Config(model=config), TASK)
  rows = list(program("embedding_norms").rows_of("random", config, params, SENTENCES))
  for row, (side, sentences) in zip(rows, SENTENCES.items(), strict=True):
    name = "own_source_embedding" if side == "source" and not share else "target_embedding"
    table = float64(params)[name]["table"]
    size = {token: math.sqrt(config.d_model * sum(x * x for x in table[token])) for token in range(len(table))}
    tokens = [token for sentence in sentences for token in sentence]
    assert (row["pieces"], row["tokens"]) == (len({*tokens}), len(tokens))
    assert float(row["embedding, mean over pieces"]) == pytest.approx(
      np.mean([size[token] for token in {*tokens}]), abs=0.006
    )
    assert float(row["over tokens"]) == pytest.approx(np.mean([size[token] for token in tokens]), abs=0.006)
    assert float(row["position"]) == pytest.approx(math.sqrt(config.d_model / 2), abs=0.006)

"""A run that begins with word vectors made elsewhere."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from etils import epath

from tests.tiny_run import assert_same_bits, state_of, tiny
from transformer_jax import runs
from transformer_jax.model.params import by_name
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import loop


@pytest.mark.long
def test_a_run_goes_on_without_the_file(prefix, tmp_path, capfd):
  vectors = tmp_path / "vectors.txt"
  text = Path(f"{prefix}.en").read_text()
  words = {word: np.random.default_rng(i).standard_normal(8) for i, word in enumerate(sorted({*text.split()}))}
  vectors.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in words.items()))
  config = tiny(prefix, embeddings=str(vectors), freeze_embeddings=True)
  model = dataclasses.replace(config.model, vocab_size=330)
  config = dataclasses.replace(config, model=model, data=dataclasses.replace(config.data, validation=""))
  whole, parts = tmp_path / "whole", tmp_path / "parts"
  loop.train(config, epath.Path(whole))
  [reported] = re.findall(rf"(\d+) of 330 tokens have a vector in {re.escape(str(vectors))}\n", capfd.readouterr().err)
  loop.train(dataclasses.replace(config, train=dataclasses.replace(config.train, steps=4)), epath.Path(parts))
  vectors.unlink()
  loop.train(config, epath.Path(parts))
  assert "tokens have a vector" in capfd.readouterr().err.partition("resuming after step 4")[0]
  assert_same_bits(state_of(parts, config), state_of(whole, config))

  run = runs.open(whole)
  vocabulary = run.tokenizer.pieces(range(330))
  assert int(reported) == sum(f" {word}" in vocabulary for word in words) > 0
  table = np.asarray(by_name(state_of(whole, config).params)["target_embedding/table"])
  found = {word: table[pieces[0]] for word in words if len(pieces := run.tokenizer.encode(word)) == 1}
  assert found
  scales = np.array([row / words[word] for word, row in found.items()])
  np.testing.assert_allclose(scales, scales[0, 0], rtol=1e-5)
  with pytest.raises(InputError, match=r"vectors\.txt does not exist"):
    loop.train(config, epath.Path(tmp_path / "new"))
  assert "learning a vocabulary" not in capfd.readouterr().err

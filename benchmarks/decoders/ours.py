"""This project, through its Python API: text to text, tokenizer and all."""

from pathlib import Path
from typing import Any

import protocol

from transformer_jax.runtime.compilation_cache import use_compilation_cache
from transformer_jax.runtime.process import use_huge_pages


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  from transformer_jax.decoding.translator import Translator

  use_compilation_cache()
  translator = Translator.load(job["workdir"])

  def translate(sentences, beam, batch, *, patience):
    found = translator.translate(
      [job["lines"][i] for i in sentences],
      beam_size=beam,
      patience=patience,
      batch_size=batch or None,
      return_scores=True,
    )
    return [(translation.text, translation.tokens) for translation in found]

  return protocol.translator(translate)


if __name__ == "__main__":
  use_huge_pages()  # as the command line does
  protocol.serve(load)

"""CTranslate2 with the model that `transformer-jax export` wrote, in float32, float16, bfloat16 or 8-bit integers."""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import protocol


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  exported = folder / sys.argv[2]
  # Either all cores compute one batch, or each core its own batch: users would try both.
  together, apart = (
    ctranslate2.Translator(
      str(exported),
      device=job["device"],
      compute_type=exported.name.split()[1] if " " in exported.name else "float32",
      inter_threads=inter,
      intra_threads=job["threads"] // inter,
    )
    for inter in (1, job["threads"])
  )
  names = json.loads((exported / "shared_vocabulary.json").read_text())
  numbers = {name: i for i, name in enumerate(names)}
  sources = [[names[i] for i in source[:-1]] for source in job["sources"]]  # it adds EOS itself

  def translate(sentences, beam, batch, *, batch_a_core=False):
    found = (apart if batch_a_core else together).translate_batch(
      [sources[i] for i in sentences],
      beam_size=beam,
      patience=1,
      length_penalty=job["length_penalty"],
      max_batch_size=batch,
      min_decoding_length=0,
      max_decoding_length=job["most_tokens"],
      max_input_length=0,
    )
    return [[numbers[name] for name in result.hypotheses[0]] for result in found]

  return protocol.translator(translate)


if __name__ == "__main__":
  protocol.serve(load)

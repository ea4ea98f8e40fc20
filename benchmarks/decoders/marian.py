"""MarianMT of Hugging Face transformers in float32, with the model that `transformer-jax export` wrote."""

import sys
from pathlib import Path
from typing import Any

import protocol
import torch
from transformers import MarianMTModel


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  torch.set_num_threads(job["threads"])
  model = MarianMTModel.from_pretrained(folder / sys.argv[2]).to(job["device"]).eval()

  @torch.inference_mode()
  def translate_batch(sources, beam, most_tokens):
    source = torch.tensor(protocol.padded(sources)).to(job["device"])
    found = model.generate(
      input_ids=source,
      attention_mask=(source != protocol.PAD).long(),
      num_beams=beam,
      do_sample=False,
      length_penalty=job["length_penalty"] if beam > 1 else None,
      early_stopping=True if beam > 1 else None,
      max_new_tokens=most_tokens,
    )
    return found[:, 1:].tolist()  # without the BOS in front

  return protocol.translator(protocol.by_length(job, translate_batch))


if __name__ == "__main__":
  protocol.serve(load)

"""MarianMT of Hugging Face transformers in float32, with the model that `transformer-jax export` wrote."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import protocol
import torch
from transformers import MarianMTModel

_translate_batch: protocol.TranslateBatch | None = None  # of a process that works on one core


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  exported = folder / sys.argv[2]
  # Either all cores compute one batch, or a process on each core its own batch: users would try both.
  pool = ProcessPoolExecutor(
    job["threads"], multiprocessing.get_context("spawn"), initializer=begin_process, initargs=(job, exported)
  )

  translate_batch = loaded(job, exported, job["threads"])

  def on_each_core(batches):
    if job["device"] != "cpu":
      return (translate_batch(*batch) for batch in batches)
    return pool.map(translate_in_process, batches)

  return protocol.translator(protocol.by_length(job, translate_batch, on_each_core))


def begin_process(job: dict[str, Any], exported: Path) -> None:
  global _translate_batch
  _translate_batch = loaded(job, exported, 1)


def translate_in_process(batch: tuple[list[list[int]], int, int]) -> Any:
  assert _translate_batch
  return _translate_batch(*batch)


def loaded(job: dict[str, Any], exported: Path, threads: int) -> protocol.TranslateBatch:
  torch.set_num_threads(threads)
  if job["device"] != "cpu":
    torch.set_float32_matmul_precision("high")  # TF32, as JAX's default is
  model = MarianMTModel.from_pretrained(exported).to(job["device"]).eval()

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

  return translate_batch


if __name__ == "__main__":
  protocol.serve(load)

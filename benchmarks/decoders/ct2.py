"""CTranslate2 in float32, with this project's weights written through its specification API."""

from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import protocol
import weights
from ctranslate2.specs.transformer_spec import TransformerSpec


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  write_model(job, folder / "ctranslate2")
  # Either all cores compute one batch, or each core its own batch: users would try both.
  together, apart = (
    ctranslate2.Translator(
      str(folder / "ctranslate2"),
      device=job["device"],
      compute_type="float32",
      inter_threads=inter,
      intra_threads=job["threads"] // inter,
    )
    for inter in (1, job["threads"])
  )
  names = vocabulary_of(job["vocab_size"])
  numbers = {name: i for i, name in enumerate(names)}
  sources = [[names[i] for i in source] for source in job["sources"]]

  def translate(sentences, beam, batch, *, batch_a_core=False):
    found = (apart if batch_a_core else together).translate_batch(
      [sources[i] for i in sentences],
      beam_size=beam,
      patience=1,
      length_penalty=job["length_penalty"],
      max_batch_size=batch,
      max_decoding_length=job["most_tokens"],
      max_input_length=0,
    )
    return [[numbers[name] for name in result.hypotheses[0]] for result in found]

  return protocol.translator(translate)


def vocabulary_of(size: int) -> list[str]:
  """Names of the pieces."""
  return ["<pad>", "<unk>", "<s>", "</s>", *map(str, range(4, size))]


def write_model(job: dict[str, Any], folder: Path) -> None:
  """This project's weights as a CTranslate2 model."""
  params = weights.read(folder.parent)
  table = params["target_embedding/table"]
  spec = TransformerSpec.from_config(weights.layers(params), job["heads"], pre_norm=False)
  positions = weights.sinusoids(job["positions"], table.shape[1])
  for side, embeddings in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
    embeddings.weight = table
    side.position_encodings.encodings = positions
  spec.decoder.projection.weight = table
  for i, layer in enumerate(spec.encoder.layer):
    _attention(layer.self_attention, params, f"encoder/layers_{i}", "attention", fused=3)
    _feed_forward(layer.ffn, params, f"encoder/layers_{i}/feed_forward")
  for i, layer in enumerate(spec.decoder.layer):
    _attention(layer.self_attention, params, f"decoder/layers_{i}", "self_attention", fused=3)
    _attention(layer.attention, params, f"decoder/layers_{i}", "cross_attention", fused=2)
    _feed_forward(layer.ffn, params, f"decoder/layers_{i}/feed_forward")
  vocabulary = vocabulary_of(len(table))
  spec.register_source_vocabulary(vocabulary)
  spec.register_target_vocabulary(vocabulary)
  spec.config.layer_norm_epsilon = 1e-6
  spec.validate()
  spec.optimize()
  folder.mkdir()
  spec.save(str(folder))


def _attention(spec: Any, params: dict[str, np.ndarray], layer: str, name: str, fused: int) -> None:
  """Projections of queries, keys and values, of which the last `fused` are one matrix."""
  kernels = [params[f"{layer}/{name}/{part}/kernel"].T for part in ("query", "key", "value")]
  matrices = [*kernels[: 3 - fused], np.concatenate(kernels[3 - fused :]), params[f"{layer}/{name}/output/kernel"].T]
  for linear, matrix in zip(spec.linear, matrices, strict=True):
    linear.weight = np.ascontiguousarray(matrix)
  _layer_norm(
    spec.layer_norm,
    params,
    f"{layer}/{name.removesuffix('_attention')}_sublayer",
  )


def _feed_forward(spec: Any, params: dict[str, np.ndarray], name: str) -> None:
  for linear, part in ((spec.linear_0, "inner"), (spec.linear_1, "outer")):
    linear.weight = np.ascontiguousarray(params[f"{name}/{part}/kernel"].T)
    linear.bias = params[f"{name}/{part}/bias"]
  _layer_norm(spec.layer_norm, params, name + "_sublayer")


def _layer_norm(spec: Any, params: dict[str, np.ndarray], name: str) -> None:
  spec.gamma, spec.beta = params[f"{name}/norm/scale"], params[f"{name}/norm/bias"]


if __name__ == "__main__":
  protocol.serve(load)

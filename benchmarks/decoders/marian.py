"""MarianMT of Hugging Face transformers in float32, with `generate` and this project's weights.

MarianMT has the sines of all frequencies first and then the cosines; the paper
and this project alternate them. Our dimension 2i is MarianMT's dimension i, and
2i + 1 is d_model / 2 + i. With the columns of the table, the inputs and outputs
of the projections and the LayerNorms in that order, both compute the same.
MarianMT's projections have biases, which are zero here, and its LayerNorms get
our epsilon.
"""

from pathlib import Path
from typing import Any

import numpy as np
import protocol
import torch
import weights
from transformers import MarianConfig, MarianMTModel


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  torch.set_num_threads(job["threads"])
  model = build(job, weights.read(folder)).to(job["device"]).eval()

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


def build(job: dict[str, Any], params: dict[str, np.ndarray]) -> MarianMTModel:
  """The model with this project's weights."""
  vocab, d_model = params["target_embedding/table"].shape
  stacks = ("encoder", "decoder")
  d_ff = params["encoder/layers_0/feed_forward/inner/bias"].size
  config = MarianConfig(
    vocab_size=vocab,
    d_model=d_model,
    **{f"{stack}_layers": weights.layers(params) for stack in stacks},
    **{f"{stack}_ffn_dim": d_ff for stack in stacks},
    **{f"{stack}_attention_heads": job["heads"] for stack in stacks},
    activation_function="relu",
    scale_embedding=True,
    max_position_embeddings=job["positions"],
    pad_token_id=protocol.PAD,
    bos_token_id=protocol.BOS,
    eos_token_id=protocol.EOS,
    decoder_start_token_id=protocol.BOS,
    forced_eos_token_id=None,
  )
  model = MarianMTModel(config)
  theirs = dict(model.named_parameters())
  with torch.no_grad():
    for name, array in _renamed(params, np.r_[0:d_model:2, 1:d_model:2]).items():
      theirs[name].copy_(torch.tensor(array))
    for name, tensor in theirs.items():
      if name.endswith("_proj.bias"):
        tensor.zero_()
    for module in model.modules():
      if isinstance(module, torch.nn.LayerNorm):
        module.eps = 1e-6
  return model


def _renamed(params: dict[str, np.ndarray], order: np.ndarray) -> dict[str, np.ndarray]:
  """Our weights by MarianMT's names, with d_model in its order."""
  renamed = {"model.shared.weight": params["target_embedding/table"][:, order]}
  names = {
    "attention": "self_attn",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "attention_sublayer": "self_attn_layer_norm",
    "self_sublayer": "self_attn_layer_norm",
    "cross_sublayer": "encoder_attn_layer_norm",
    "feed_forward_sublayer": "final_layer_norm",
  }
  for name, array in params.items():
    stack, *rest = name.split("/")
    if stack not in ("encoder", "decoder"):
      continue
    layer, part, inner, kind = rest
    prefix = f"model.{stack}.layers.{layer.removeprefix('layers_')}"
    if part.endswith("sublayer"):
      renamed[f"{prefix}.{names[part]}.{'weight' if kind == 'scale' else 'bias'}"] = array[order]
    elif part == "feed_forward":
      linear = f"{prefix}.{'fc1' if inner == 'inner' else 'fc2'}"
      if kind == "bias":
        renamed[f"{linear}.bias"] = array if inner == "inner" else array[order]
      else:
        renamed[f"{linear}.weight"] = (array[order] if inner == "inner" else array[:, order]).T
    elif inner == "output":
      renamed[f"{prefix}.{names[part]}.out_proj.weight"] = array[:, order].T
    else:
      renamed[f"{prefix}.{names[part]}.{inner[0]}_proj.weight"] = array[order].T
  return renamed


if __name__ == "__main__":
  protocol.serve(load)

"""JoeyNMT 2.3.0 in float32: its own model and search, with this project's weights.

Its positions, LayerNorm epsilon and shared table equal ours. Its projections have
biases, which are zero here, and its vocabulary begins with UNK before PAD.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joeynmt.batch
import numpy as np
import protocol
import torch
import weights
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

_PAD = 1


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  torch.set_num_threads(job["threads"])
  device = torch.device(job["device"])
  model = build(job, weights.read(folder)).to(device).eval()

  def translate_batch(sources, beam, most_tokens):
    source = protocol.padded(sources)
    lengths = torch.tensor((source != protocol.PAD).sum(1))
    batch = joeynmt.batch.Batch(
      torch.tensor(_swapped(source)),
      lengths,
      None,
      None,
      None,
      torch.arange(len(source)),
      device,
      _PAD,
      protocol.EOS,
      is_train=False,
    )
    found, _, _ = search(model, batch, most_tokens, beam, job["length_penalty"])
    return _swapped(np.asarray(found)).tolist()

  return protocol.translator(protocol.by_length(job, translate_batch))


def build(job: dict[str, Any], params: dict[str, np.ndarray]) -> torch.nn.Module:
  """The model with this project's weights."""
  table = params["target_embedding/table"]
  special = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[]
  )
  special.unk_id, special.pad_id, special.bos_id, special.eos_id = range(4)
  vocabulary = Vocabulary([str(i) for i in range(4, len(table))], special)
  stack = {
    "type": "transformer",
    "num_layers": job["layers"],
    "num_heads": job["heads"],
    "hidden_size": table.shape[1],
    "ff_size": params["encoder/layers_0/feed_forward/inner/bias"].size,
    "layer_norm": "post",
    "embeddings": {"embedding_dim": table.shape[1], "scale": True},
  }
  config = {"encoder": stack, "decoder": stack, "tied_embeddings": True, "tied_softmax": True}
  model = build_model(config, vocabulary, vocabulary)
  with torch.no_grad():
    for name, tensor in model.named_parameters():
      if name.endswith("bias"):
        tensor.zero_()
    model.src_embed.lut.weight.copy_(torch.tensor(_rows_swapped(table)))
    for i, layer in enumerate(model.encoder.layers):
      ours = f"encoder/layers_{i}"
      _attention(layer.src_src_att, layer.layer_norm, params, f"{ours}/attention", f"{ours}/attention_sublayer")
      _feed_forward(layer.feed_forward, params, ours)
    for i, layer in enumerate(model.decoder.layers):
      ours = f"decoder/layers_{i}"
      _attention(layer.trg_trg_att, layer.x_layer_norm, params, f"{ours}/self_attention", f"{ours}/self_sublayer")
      _attention(layer.src_trg_att, layer.dec_layer_norm, params, f"{ours}/cross_attention", f"{ours}/cross_sublayer")
      _feed_forward(layer.feed_forward, params, ours)
  return model


def _attention(theirs: Any, norm: Any, params: dict[str, np.ndarray], name: str, sublayer: str) -> None:
  for part in ("query", "key", "value"):
    getattr(theirs, f"{part[0]}_layer").weight.copy_(torch.tensor(params[f"{name}/{part}/kernel"].T))
  theirs.output_layer.weight.copy_(torch.tensor(params[f"{name}/output/kernel"].T))
  _layer_norm(norm, params, sublayer)


def _feed_forward(theirs: Any, params: dict[str, np.ndarray], layer: str) -> None:
  for linear, part in ((theirs.pwff_layer[0], "inner"), (theirs.pwff_layer[3], "outer")):
    linear.weight.copy_(torch.tensor(params[f"{layer}/feed_forward/{part}/kernel"].T))
    linear.bias.copy_(torch.tensor(params[f"{layer}/feed_forward/{part}/bias"]))
  _layer_norm(theirs.layer_norm, params, f"{layer}/feed_forward_sublayer")


def _layer_norm(theirs: Any, params: dict[str, np.ndarray], sublayer: str) -> None:
  theirs.weight.copy_(torch.tensor(params[f"{sublayer}/norm/scale"]))
  theirs.bias.copy_(torch.tensor(params[f"{sublayer}/norm/bias"]))


def _swapped(tokens: np.ndarray) -> np.ndarray:
  """Swaps the numbers of PAD and UNK: from ours to JoeyNMT's, or back."""
  return np.where(tokens < 2, 1 - tokens, tokens)


def _rows_swapped(table: np.ndarray) -> np.ndarray:
  return np.concatenate([table[1::-1], table[2:]])


if __name__ == "__main__":
  protocol.serve(load)

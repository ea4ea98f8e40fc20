"""`torch.nn.Transformer`, used as in its documentation, with its fast paths.

The fast paths are scaled_dot_product_attention (which its layers use in
training), the fused Adam, and cross_entropy with its built-in label smoothing.
With `compile` after the folder on the command line, `torch.compile` compiles the
loss for any shape. With `bfloat16` the loss is computed under `torch.autocast`.
"""

import math
import sys
from pathlib import Path
from typing import Any

import protocol
import torch
from torch import nn
from torch.nn import functional as F


class Translator(nn.Module):
  """Shared embeddings with sinusoids, `nn.Transformer`, and the embedding table as the output layer."""

  def __init__(self, sizes: dict[str, Any], longest: int):
    super().__init__()
    d_model = sizes["d_model"]
    self.table = nn.Parameter(torch.randn(sizes["vocab_size"], d_model) / math.sqrt(d_model))
    self.dropout = nn.Dropout(sizes["dropout"])
    self.transformer = nn.Transformer(
      d_model,
      sizes["num_heads"],
      sizes["num_layers"],
      sizes["num_layers"],
      sizes["d_ff"],
      sizes["dropout"],
      batch_first=True,
    )
    # The paper has no LayerNorm after a post-norm stack, §5.4 no dropout on attention weights or inside feed-forward
    # layers. Without dropout on its weights, attention has a faster path.
    self.transformer.encoder.norm = self.transformer.decoder.norm = None
    for module in self.transformer.modules():
      if isinstance(module, nn.MultiheadAttention):
        module.dropout = 0.0
      elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        module.dropout.p = 0.0
    angles = torch.arange(longest)[:, None] * 10_000.0 ** -(torch.arange(0, d_model, 2) / d_model)
    self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).reshape(longest, d_model))
    self.register_buffer("future", torch.ones(longest, longest, dtype=torch.bool).triu(1))

  def embed(self, tokens: torch.Tensor) -> torch.Tensor:
    scaled = F.embedding(tokens, self.table) * math.sqrt(self.table.shape[1])
    return self.dropout(scaled + self.positions[: tokens.shape[1]])

  def loss(self, source: torch.Tensor, before: torch.Tensor, target: torch.Tensor, smoothing: float) -> torch.Tensor:
    source_padding, target_padding = source == protocol.PAD, target == protocol.PAD
    length = target.shape[1]
    hidden = self.transformer(
      self.embed(source),
      self.embed(before),
      tgt_mask=self.future[:length, :length],
      src_key_padding_mask=source_padding,
      memory_key_padding_mask=source_padding,
      tgt_is_causal=True,
    )
    hidden, target = hidden[~target_padding], target[~target_padding]  # no logits of padding
    return F.cross_entropy(hidden @ self.table.T, target, label_smoothing=smoothing)


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  torch.set_num_threads(job["threads"])
  torch.manual_seed(0)
  model = Translator(job["config"]["model"], job["longest"] + 1)
  loss_of = torch.compile(model.loss, dynamic=True) if "compile" in sys.argv[2:] else model.loss
  optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
  smoothing, batches = job["config"]["train"]["label_smoothing"], job["batches"]

  def update(number: int) -> tuple[torch.Tensor, int]:
    optimizer.param_groups[0]["lr"] = protocol.learning_rate(job, number)
    pairs = batches[number % len(batches)]
    source = torch.from_numpy(protocol.padded([source for source, _ in pairs]))
    before = torch.from_numpy(protocol.padded([[protocol.BOS, *target[:-1]] for _, target in pairs]))
    target = torch.from_numpy(protocol.padded([target for _, target in pairs]))
    with torch.autocast("cpu", torch.bfloat16, enabled="bfloat16" in sys.argv[2:]):
      loss = loss_of(source, before, target, smoothing)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    tokens = sum(len(target) for _, target in pairs)
    return loss.detach() * tokens, tokens

  return protocol.trainer(update)


if __name__ == "__main__":
  protocol.serve(load)

"""JoeyNMT 2.3.0: its own model, loss, batch and optimizer, in the order of its own `TrainManager`."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import protocol
import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_optimizer
from joeynmt.model import build_model
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from joeynmt.vocabulary import Vocabulary

_PAD = 1  # JoeyNMT's vocabulary begins with UNK; our tokens never have UNK, so only PAD gets another number


def load(job: dict[str, Any], folder: Path) -> protocol.Answer:
  torch.set_num_threads(job["threads"])
  torch.manual_seed(0)
  model = build(job["config"]["model"])
  smoothing = job["config"]["train"]["label_smoothing"]
  model.loss_function = "crossentropy", smoothing
  optimizer = build_optimizer(
    {"optimizer": "adam", "learning_rate": 1.0, "adam_betas": [0.9, 0.98]}, model.parameters()
  )
  batches, device = job["batches"], torch.device("cpu")
  # JoeyNMT's loss is the divergence from the smoothed targets. Ours is the cross entropy: the divergence plus the
  # entropy of the targets.
  entropy = -(1 - smoothing) * math.log(1 - smoothing)
  entropy -= smoothing * math.log(smoothing / (job["config"]["model"]["vocab_size"] - 2))

  def update(number: int) -> tuple[torch.Tensor, int]:
    optimizer.param_groups[0]["lr"] = protocol.learning_rate(job, number)
    pairs = batches[number % len(batches)]
    source = torch.from_numpy(protocol.padded([source for source, _ in pairs], _PAD))
    target = torch.from_numpy(protocol.padded([[protocol.BOS, *target] for _, target in pairs], _PAD))
    lengths = (source != _PAD).sum(1)
    batch = Batch(
      source, lengths, None, target, None, torch.arange(len(pairs)), device, _PAD, protocol.EOS, is_train=True
    )
    model.train()
    batch.sort_by_src_length()
    loss, *_ = model(return_type="loss", **vars(batch))
    batch.normalize(loss, "tokens").backward()
    optimizer.step()
    model.zero_grad()
    return loss.detach() + batch.ntokens * entropy, batch.ntokens

  return protocol.trainer(update)


def build(sizes: dict[str, Any]) -> torch.nn.Module:
  special = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[]
  )
  special.unk_id, special.pad_id, special.bos_id, special.eos_id = range(4)
  vocabulary = Vocabulary([str(i) for i in range(4, sizes["vocab_size"])], special)
  stack = {
    "type": "transformer",
    "num_layers": sizes["num_layers"],
    "num_heads": sizes["num_heads"],
    "hidden_size": sizes["d_model"],
    "ff_size": sizes["d_ff"],
    "dropout": sizes["dropout"],
    "layer_norm": "post",
    "embeddings": {"embedding_dim": sizes["d_model"], "scale": True, "dropout": sizes["dropout"]},
  }
  config = {
    "encoder": stack,
    "decoder": stack,
    "tied_embeddings": True,
    "tied_softmax": True,
    "initializer": "xavier_uniform",
  }
  model = build_model(config, vocabulary, vocabulary)
  for module in model.modules():  # §5.4 has no dropout on attention weights and inside feed-forward layers
    if isinstance(module, MultiHeadedAttention):
      module.dropout.p = 0.0
    elif isinstance(module, PositionwiseFeedForward):
      module.pwff_layer[2].p = 0.0
  return model


if __name__ == "__main__":
  protocol.serve(load)

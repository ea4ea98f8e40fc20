"""This project's parameters in the names and the layout of `torch.nn.Transformer`; it needs only NumPy.

Parameters are only moved, never changed, so that their gradients can be moved in the same way.
"""

from typing import Any

import numpy as np

Params = Any
Arrays = dict[str, np.ndarray]

# torch's name of each part of a layer.
ENCODER = {
  "attention": "self_attn.",
  "attention_sublayer": "norm1.",
  "feed_forward": "",
  "feed_forward_sublayer": "norm2.",
}
DECODER = {
  "self_attention": "self_attn.",
  "self_sublayer": "norm1.",
  "cross_attention": "multihead_attn.",
  "cross_sublayer": "norm2.",
  "feed_forward": "",
  "feed_forward_sublayer": "norm3.",
}


def torch_transformer(params: Params) -> Arrays:
  """Encoder and decoder as a state of `torch.nn.Transformer`; biases that we do not have are 0 there."""
  return _prefixed("encoder.", _stack(params["encoder"], ENCODER)) | _prefixed(
    "decoder.", _stack(params["decoder"], DECODER)
  )


def _stack(params: Params, names: dict[str, str]) -> Arrays:
  result = _prefixed("norm.", _layer_norm(params["norm"])) if "norm" in params else {}
  for part, layer in params.items():
    if part != "norm":
      result |= _prefixed(f"layers.{part.removeprefix('layers_')}.", _layer(layer, names))
  return result


def _layer(params: Params, names: dict[str, str]) -> Arrays:
  result = {}
  for part, values in params.items():
    if part.endswith("attention"):
      arrays = _attention(values)
    elif part.endswith("sublayer"):
      arrays = _layer_norm(values["norm"])
    else:
      arrays = _feed_forward(values)
    result |= _prefixed(names[part], arrays)
  return result


def _attention(params: Params) -> Arrays:
  """Kernels `[model, heads, d_k]` become one matrix `[3 model, model]`, and `[heads, d_v, model]` a matrix."""
  output = np.asarray(params["output"]["kernel"])
  d_model = output.shape[-1]
  inputs = [params[name] for name in ("query", "key", "value")]
  return {
    "in_proj_weight": np.concatenate([np.reshape(part["kernel"], (d_model, -1)).T for part in inputs]),
    "in_proj_bias": np.concatenate([_bias(part, d_model) for part in inputs]),
    "out_proj.weight": output.reshape(-1, d_model).T,
    "out_proj.bias": _bias(params["output"], d_model),
  }


def _bias(params: Params, size: int) -> np.ndarray:
  return np.reshape(params["bias"], size) if "bias" in params else np.zeros(size, np.float32)


def _feed_forward(params: Params) -> Arrays:
  return {
    f"{name}.{kind}": np.asarray(array).T
    for name, part in (("linear1", params["inner"]), ("linear2", params["outer"]))
    for kind, array in (("weight", part["kernel"]), ("bias", part["bias"]))
  }


def _layer_norm(params: Params) -> Arrays:
  return {"weight": np.asarray(params["scale"]), "bias": np.asarray(params["bias"])}


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
  return {prefix + name: array for name, array in arrays.items()}

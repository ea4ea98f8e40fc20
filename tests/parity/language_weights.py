"""The language models' parameters in the names and the layout of Hugging Face Transformers; it needs only NumPy.

Parameters are only moved, never changed, so that their gradients can be moved in the same way.
"""

from typing import Any

import numpy as np

Params = Any
Arrays = dict[str, np.ndarray]


def gpt_weights(params: Params) -> Arrays:
  """The parameters as a state of `OpenAIGPTLMHeadModel`."""
  return _gpt(params, {"embedding": "tokens_embed.weight", "positions": "positions_embed.weight"})


def gpt2_weights(params: Params) -> Arrays:
  """The parameters as a state of `GPT2LMHeadModel`."""
  norm = _norm(params["decoder"]["norm"], "transformer.ln_f.")
  return _gpt(params, {"embedding": "wte.weight", "positions": "wpe.weight"}) | norm


def _gpt(params: Params, tables: dict[str, str]) -> Arrays:
  result = {f"transformer.{name}": np.asarray(params[table]["table"]) for table, name in tables.items()}
  result["lm_head.weight"] = np.asarray(params["embedding"]["table"])
  for name, layer in params["decoder"].items():
    if name == "norm":
      continue
    prefix = f"transformer.h.{name.removeprefix('layers_')}."
    attention = layer["self_attention"]
    d_model = attention["query"]["kernel"].shape[0]
    inputs = [attention[part] for part in ("query", "key", "value")]
    result |= {
      f"{prefix}attn.c_attn.weight": np.concatenate([np.reshape(x["kernel"], (d_model, -1)) for x in inputs], axis=1),
      f"{prefix}attn.c_attn.bias": np.concatenate([np.reshape(x["bias"], -1) for x in inputs]),
      f"{prefix}attn.c_proj.weight": np.reshape(attention["output"]["kernel"], (-1, d_model)),
      f"{prefix}attn.c_proj.bias": np.asarray(attention["output"]["bias"]),
    }
    for part, other in (("inner", "c_fc"), ("outer", "c_proj")):
      result[f"{prefix}mlp.{other}.weight"] = np.asarray(layer["feed_forward"][part]["kernel"])
      result[f"{prefix}mlp.{other}.bias"] = np.asarray(layer["feed_forward"][part]["bias"])
    result |= _norm(layer["self_sublayer"]["norm"], f"{prefix}ln_1.")
    result |= _norm(layer["feed_forward_sublayer"]["norm"], f"{prefix}ln_2.")
  return result


def bert_weights(params: Params) -> Arrays:
  """The parameters as a state of `BertForPreTraining`."""
  trunk = params["trunk"]
  result = {
    "bert.embeddings.word_embeddings.weight": np.asarray(trunk["embedding"]["table"]),
    "bert.embeddings.position_embeddings.weight": np.asarray(trunk["positions"]["table"]),
    "bert.embeddings.token_type_embeddings.weight": np.asarray(trunk["sides"]["table"]),
    "cls.predictions.bias": np.asarray(params["output_bias"]),
    "cls.predictions.decoder.bias": np.asarray(params["output_bias"]),
    "cls.predictions.decoder.weight": np.asarray(trunk["embedding"]["table"]),
  }
  result |= _norm(trunk["embedding_norm"], "bert.embeddings.LayerNorm.")
  result |= _linear(trunk["pooler"], "bert.pooler.dense.")
  result |= _linear(params["transform"], "cls.predictions.transform.dense.")
  result |= _norm(params["transform_norm"], "cls.predictions.transform.LayerNorm.")
  result |= _linear(params["next"], "cls.seq_relationship.")
  for name, layer in trunk["encoder"].items():
    prefix = f"bert.encoder.layer.{name.removeprefix('layers_')}."
    attention = layer["attention"]
    for part in ("query", "key", "value"):
      kernel = np.asarray(attention[part]["kernel"])
      result[f"{prefix}attention.self.{part}.weight"] = kernel.reshape(len(kernel), -1).T
      result[f"{prefix}attention.self.{part}.bias"] = np.reshape(attention[part]["bias"], -1)
    output = np.asarray(attention["output"]["kernel"])
    result[f"{prefix}attention.output.dense.weight"] = output.reshape(-1, output.shape[-1]).T
    result[f"{prefix}attention.output.dense.bias"] = np.asarray(attention["output"]["bias"])
    result |= _norm(layer["attention_sublayer"]["norm"], f"{prefix}attention.output.LayerNorm.")
    result |= _linear(layer["feed_forward"]["inner"], f"{prefix}intermediate.dense.")
    result |= _linear(layer["feed_forward"]["outer"], f"{prefix}output.dense.")
    result |= _norm(layer["feed_forward_sublayer"]["norm"], f"{prefix}output.LayerNorm.")
  return result


def _linear(params: Params, prefix: str) -> Arrays:
  return {f"{prefix}weight": np.asarray(params["kernel"]).T, f"{prefix}bias": np.asarray(params["bias"])}


def _norm(params: Params, prefix: str) -> Arrays:
  return {f"{prefix}weight": np.asarray(params["scale"]), f"{prefix}bias": np.asarray(params["bias"])}

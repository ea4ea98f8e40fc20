"""The format `gpt2`: a folder for `GPT2LMHeadModel` of Hugging Face transformers.

It has the projections of queries, keys and values in one matrix, and matrices `[in, out]`, as here.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from transformer_jax.config import Config
from transformer_jax.interchange import expressible, hf_folder, hf_tokenizer, model_card
from transformer_jax.interchange.layout import Layout, Name, layer_norm, linear, of_layers, renamed
from transformer_jax.language.config import GPTConfig
from transformer_jax.model.config import Activation
from transformer_jax.model.params import by_name
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runs.run import Model, Run

ACTIVATIONS = {Activation.RELU: "relu", Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_new"}

_OURS, _THEIRS = "decoder/layers_{}", "transformer.h.{}"
_LAYER = (
  *(
    name
    for part in ("query", "key", "value")
    for name in linear(f"{_OURS}/self_attention/{part}", f"{_THEIRS}.attn.c_attn", Layout.CONV_FROM_MODEL)
  ),
  *linear(f"{_OURS}/self_attention/output", f"{_THEIRS}.attn.c_proj", Layout.CONV_TO_MODEL),
  *layer_norm(f"{_OURS}/self_sublayer/norm", f"{_THEIRS}.ln_1"),
  *linear(f"{_OURS}/feed_forward/inner", f"{_THEIRS}.mlp.c_fc", Layout.CONV_FROM_MODEL),
  *linear(f"{_OURS}/feed_forward/outer", f"{_THEIRS}.mlp.c_proj", Layout.CONV_TO_MODEL),
  *layer_norm(f"{_OURS}/feed_forward_sublayer/norm", f"{_THEIRS}.ln_2"),
)


def names(config: GPTConfig) -> list[Name]:
  """Every parameter of the model in both libraries."""
  return [
    Name("embedding/table", "transformer.wte.weight", Layout.TABLE),
    Name("positions/table", "transformer.wpe.weight", Layout.TABLE),
    *of_layers(_LAYER, config.num_layers),
    *layer_norm("decoder/norm", "transformer.ln_f"),
  ]


def require(config: Config) -> None:
  """Raises InputError if the format cannot express the model."""
  expressible.of_kind(config, GPTConfig, "gpt2", {"pre_norm": True})


def write(folder: Path, run: Run, model: Model) -> None:
  """Writes the folder: parameters, configurations, vocabulary, and a page about the model.

  Args:
    folder: an empty folder.
    run: the run.
    model: the run's model.

  Raises:
    InputError: the format cannot express the vocabulary.
  """
  config = model.config.model
  assert isinstance(config, GPTConfig)
  hf_tokenizer.require(model.tokenizer)
  ours = {name: np.asarray(x) for name, x in by_name(jax.device_get(model.params)).items()}
  hf_folder.write(
    folder,
    renamed(ours, names(config), np.arange(config.d_model)),
    {"config.json": _config(config), "generation_config.json": _generation_config(config)},
    model_card.card(run, model, _USAGE, _HEADER),
  )
  special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
  settings = {
    **special,
    "model_max_length": config.max_positions,
    "model_input_names": ["input_ids", "attention_mask"],
    "split_special_tokens": True,  # a text with `</s>` in it has these letters
  }
  hf_tokenizer.write(folder, model.tokenizer, "<s> $A", "<s> $A $B", settings)


def _config(config: GPTConfig) -> dict[str, Any]:
  return {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": config.vocab_size,
    "n_positions": config.max_positions,
    "n_embd": config.d_model,
    "n_layer": config.num_layers,
    "n_head": config.num_heads,
    "n_inner": config.d_ff,
    "activation_function": ACTIVATIONS[config.activation],
    "layer_norm_epsilon": config.layer_norm_epsilon,
    "resid_pdrop": config.dropout,
    "embd_pdrop": config.dropout,
    "attn_pdrop": config.attention_dropout,
    "tie_word_embeddings": True,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "torch_dtype": "float32",
  }


def _generation_config(config: GPTConfig) -> dict[str, Any]:
  return {
    "max_length": config.max_positions,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "suppress_tokens": [PAD, UNK, BOS],  # they are never emitted here
  }


_HEADER = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["gpt2", "transformer_jax"]}
_USAGE = """\
```python
from transformers import AutoTokenizer, GPT2LMHeadModel

tokenizer, model = AutoTokenizer.from_pretrained("."), GPT2LMHeadModel.from_pretrained(".")
found = model.generate(**tokenizer("The beginning", return_tensors="pt"), do_sample=True, top_p=0.95)
print(tokenizer.decode(found[0], skip_special_tokens=True))
```"""

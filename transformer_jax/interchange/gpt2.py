"""The format `gpt2`: a folder for `GPT2LMHeadModel` of Hugging Face transformers.

It has the projections of queries, keys and values in one matrix, and matrices `[in, out]`, as here.
"""

import re
from pathlib import Path

import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import (
  expressible,
  hf_folder,
  hf_tokenizer,
  hf_vocabulary,
  layout,
  model_card,
  vocabulary,
)
from transformer_jax.interchange.foreign_folder import ForeignFolder, Weights
from transformer_jax.interchange.import_ import Imported
from transformer_jax.interchange.layout import Layout, Name, layer_norm, linear
from transformer_jax.interchange.settings import Settings
from transformer_jax.language.config import GPTConfig
from transformer_jax.model.config import Activation
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training.initialization import shapes_of

_ACTIVATIONS = hf_folder.ACTIVATIONS | {Activation.GELU_TANH: "gelu_new"}
_SIZES = {
  "vocab_size": ("vocab_size", 50257),
  "max_positions": ("n_positions", 1024),
  "d_model": ("n_embd", 768),
  "num_layers": ("n_layer", 12),
  "num_heads": ("n_head", 12),
}
_OTHER_NAMES = {  # which that library would take in place of those above
  "hidden_size": "n_embd",
  "max_position_embeddings": "n_positions",
  "num_attention_heads": "n_head",
  "num_hidden_layers": "n_layer",
}
_DROPOUTS = {"dropout": "resid_pdrop", "attention_dropout": "attn_pdrop"}
# What the model here has one value of.
_ONLY = {
  "model_type": "gpt2",
  "scale_attn_weights": True,
  "scale_attn_by_inverse_layer_idx": False,
  "add_cross_attention": False,
  "tie_word_embeddings": True,
}
_MASK = re.compile(r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias")  # older versions saved constants of theirs
_OUTPUT = {"lm_head.weight": "transformer.wte.weight"}

_OURS, _THEIRS = "decoder/layers_{}", "transformer.h.{}"
_LAYER = (
  *linear(f"{_OURS}/self_attention/query", f"{_THEIRS}.attn.c_attn", Layout.CONV_FROM_MODEL),
  *linear(f"{_OURS}/self_attention/key", f"{_THEIRS}.attn.c_attn", Layout.CONV_FROM_MODEL),
  *linear(f"{_OURS}/self_attention/value", f"{_THEIRS}.attn.c_attn", Layout.CONV_FROM_MODEL),
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
    *layout.of_layers(_LAYER, config.num_layers),
    *layer_norm("decoder/norm", "transformer.ln_f"),
  ]


def require(config: Config) -> None:
  """Raises InputError if the format cannot express the model."""
  expressible.of_kind(config, GPTConfig, "gpt2", {"pre_norm": True})


def write(folder: Path, run: Run, model: Model) -> None:
  """Writes the folder: parameters, configurations, vocabulary, and a page about the model.

  Raises:
    InputError: the format cannot express the vocabulary.
  """
  config = model.config.model
  assert isinstance(config, GPTConfig)
  hf_tokenizer.require(model.tokenizer, "gpt2")
  hf_folder.write(
    folder,
    layout.renamed(numpy_by_name(model.params), names(config), np.arange(config.d_model)),
    {
      "config.json": _config(config, model.tokenizer),
      "generation_config.json": _generation_config(model),
    },
    model_card.card(run, model, _USAGE, _HEADER),
  )
  settings = {
    "model_max_length": hf_folder.max_length(model.config),
    "model_input_names": ["input_ids", "attention_mask"],
    "split_special_tokens": True,  # a text with `</s>` in it has these letters
  }
  if isinstance(model.tokenizer, SubwordTokenizer):
    hf_tokenizer.write_subwords(folder, model.tokenizer.vocabulary, _special_tokens(config, model.tokenizer) | settings)
    return
  pieces = vocabulary.spelled(model.tokenizer)
  begin, end = pieces[config.begin], pieces[config.end]
  special = {"bos_token": begin, "eos_token": end, "unk_token": "<unk>", "pad_token": "<pad>"}
  hf_tokenizer.write(folder, model.tokenizer, [begin, "$A"], [begin, "$A", "$B"], special | settings)


def _special_tokens(config: GPTConfig, tokenizer: SubwordTokenizer) -> dict[str, str]:
  pieces = tokenizer.vocabulary.pieces
  return {"bos_token": pieces[config.begin], "eos_token": pieces[config.end], "unk_token": pieces[config.end]}


def read(folder: ForeignFolder) -> Imported:
  """The model of a folder.

  Raises:
    InputError: the folder is damaged, or the model is one that cannot be had here.
  """
  with hf_folder.opened(folder, _ONLY, _usual) as (settings, weights):
    model = _model(settings, weights)
    _require_same_ends(folder, model)
    config = hf_folder.config(model, folder)
    shapes, table = shapes_of(config), names(model)
    wanted = layout.shapes_there(shapes, table)
    weights.require(wanted, _OUTPUT)
    arrays = {name: weights.array(name) for name in wanted}
    arrays = layout.renamed_back(arrays, table, np.arange(model.d_model), shapes)
  tokenizer = hf_vocabulary.exported(folder, model.vocab_size)
  if tokenizer is None:
    tokenizer = hf_vocabulary.byte_level(folder, model.vocab_size, (model.end, model.begin))
  return Imported(config, arrays, tokenizer)


def _require_same_ends(folder: ForeignFolder, model: GPTConfig) -> None:
  """Raises InputError if texts begin or end with other tokens in generation, of which a model here has one each."""
  generation = folder.settings("generation_config.json", optional=True)
  for name, number in {"bos_token_id": model.begin, "eos_token_id": model.end}.items():
    generation.require(name, [number, [number]], "config.json says so, and a model here has one such token")


def _usual(name: str) -> str | None:
  if _MASK.fullmatch(name):
    return None
  return name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"


def _model(settings: Settings, weights: Weights) -> GPTConfig:
  for other, name in _OTHER_NAMES.items():
    settings.require(other, [settings.value(name)] if name in settings else [], f"it is another name of {name}")
  sizes = hf_folder.sizes(settings, _SIZES, weights)
  options: JsonObject = {ours: settings.number(theirs, 0.1) for ours, theirs in _DROPOUTS.items()}
  last = sizes["vocab_size"] - 1
  end = settings.integer("eos_token_id", 50256, most=last)
  return hf_folder.model(
    GPTConfig,
    settings,
    **sizes,
    d_ff=hf_folder.sizes(settings, {"d_ff": ("n_inner", 4 * sizes["d_model"])}, weights)["d_ff"],
    pre_norm=True,
    activation=hf_folder.activation(settings, "activation_function", "gelu_new"),
    layer_norm_epsilon=settings.number("layer_norm_epsilon", 1e-5),
    begin=settings.integer("bos_token_id", end, most=last),
    end=end,
    **options,
  )


def _config(config: GPTConfig, tokenizer: Tokenizer) -> JsonObject:
  return {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    **hf_folder.sizes_there(config, _SIZES),
    "n_inner": config.d_ff,
    "activation_function": _ACTIVATIONS[config.activation],
    "layer_norm_epsilon": config.layer_norm_epsilon,
    "resid_pdrop": config.dropout,
    "embd_pdrop": config.dropout,
    "attn_pdrop": config.attention_dropout,
    "tie_word_embeddings": True,
    **_numbers(config, tokenizer),
    "torch_dtype": "float32",
  }


def _generation_config(model: Model) -> JsonObject:
  config, tokenizer = model.config.model, model.tokenizer
  assert isinstance(config, GPTConfig)
  suppressed = {"suppress_tokens": [*tokenizer.suppressed]} if tokenizer.suppressed else {}
  return {"max_length": hf_folder.max_length(model.config), **_numbers(config, tokenizer), **suppressed}


def _numbers(config: GPTConfig, tokenizer: Tokenizer) -> dict[str, int]:
  padding = {"pad_token_id": PAD} if PAD in tokenizer.suppressed else {}
  return {**padding, "bos_token_id": config.begin, "eos_token_id": config.end}


_HEADER = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["gpt2", "transformer_jax"]}
_USAGE = """\
```python
from transformers import AutoTokenizer, GPT2LMHeadModel

tokenizer, model = AutoTokenizer.from_pretrained("."), GPT2LMHeadModel.from_pretrained(".")
found = model.generate(**tokenizer("The beginning", return_tensors="pt"), do_sample=True, top_k=0, top_p=0.95)
print(tokenizer.decode(found[0], skip_special_tokens=True))
```"""

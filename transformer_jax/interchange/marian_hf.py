"""The format `marian-hf`: a folder for `MarianMTModel` and `MarianTokenizer` of Hugging Face transformers.

Their projections in attention always have biases, which are 0 for a model without them. Their sinusoids are in
`halves`. The epsilon of their LayerNorm is always 1e-5. With the 1e-6 of this project a LayerNorm gives nearly
the same: (x - mean) / sqrt(var + epsilon) differs by the factor 1 + 4.5e-6 / var.
"""

from pathlib import Path

import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.tagged import directions_of
from transformer_jax.interchange import expressible, hf_folder, model_card, vocabulary
from transformer_jax.interchange.layout import Layout, Name, layer_norm, linear, of_layers, renamed
from transformer_jax.interchange.vocabulary import Numbered
from transformer_jax.model.config import Activation, ModelConfig, Start
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.progress import say
from transformer_jax.runtime.values import JsonObject

_ACTIVATIONS = hf_folder.ACTIVATIONS | {Activation.SWISH: "swish"}
SENTENCEPIECE = vocabulary.TWO_MODELS
VOCABULARIES = ("vocab.json", "target_vocab.json")  # of the source, which is both languages' if there is no other
BIAS = "final_logits_bias"  # [1, vocab]
# The positions that a model of OPUS-MT has; ours has more if it decodes longer texts.
_POSITIONS = 512
_SOURCE_TABLE = "own_source_embedding/table"
EPSILON, _MOST_EPSILON = 1e-5, 2e-5


def _attention(ours: str, theirs: str) -> list[Name]:
  return [
    *linear(f"{ours}/query", f"{theirs}.q_proj", Layout.FROM_MODEL),
    *linear(f"{ours}/key", f"{theirs}.k_proj", Layout.FROM_MODEL),
    *linear(f"{ours}/value", f"{theirs}.v_proj", Layout.FROM_MODEL),
    *linear(f"{ours}/output", f"{theirs}.out_proj", Layout.TO_MODEL),
  ]


def _feed_forward(ours: str, theirs: str) -> list[Name]:
  return [
    *linear(f"{ours}/feed_forward/inner", f"{theirs}.fc1", Layout.FROM_MODEL),
    *linear(f"{ours}/feed_forward/outer", f"{theirs}.fc2", Layout.TO_MODEL),
    *layer_norm(f"{ours}/feed_forward_sublayer/norm", f"{theirs}.final_layer_norm"),
  ]


_ENCODER, _DECODER = ("encoder/layers_{}", "model.encoder.layers.{}"), ("decoder/layers_{}", "model.decoder.layers.{}")
_ENCODER_LAYER = (
  *_attention(f"{_ENCODER[0]}/attention", f"{_ENCODER[1]}.self_attn"),
  *layer_norm(f"{_ENCODER[0]}/attention_sublayer/norm", f"{_ENCODER[1]}.self_attn_layer_norm"),
  *_feed_forward(*_ENCODER),
)
_DECODER_LAYER = (
  *_attention(f"{_DECODER[0]}/self_attention", f"{_DECODER[1]}.self_attn"),
  *layer_norm(f"{_DECODER[0]}/self_sublayer/norm", f"{_DECODER[1]}.self_attn_layer_norm"),
  *_attention(f"{_DECODER[0]}/cross_attention", f"{_DECODER[1]}.encoder_attn"),
  *layer_norm(f"{_DECODER[0]}/cross_sublayer/norm", f"{_DECODER[1]}.encoder_attn_layer_norm"),
  *_feed_forward(*_DECODER),
)


def _tables(config: ModelConfig) -> dict[str, str]:
  """The embeddings, by our name."""
  if config.share_embeddings:
    return {"target_embedding/table": "model.shared.weight"}
  return {
    "target_embedding/table": "model.decoder.embed_tokens.weight",
    _SOURCE_TABLE: "model.encoder.embed_tokens.weight",
  }


def names(config: ModelConfig) -> list[Name]:
  """Every parameter of the model in both libraries but `BIAS`; those that one of them does not have are among them."""
  return [
    *(Name(ours, theirs, Layout.TABLE) for ours, theirs in _tables(config).items()),
    *of_layers(_ENCODER_LAYER, config.encoder_depth),
    *of_layers(_DECODER_LAYER, config.decoder_depth),
  ]


def tables(config: ModelConfig) -> dict[str, int]:
  """Their names of the arrays with a row for each piece: 0 for a piece of the source, 1 of the target, or of both."""
  return {theirs: 0 if ours == _SOURCE_TABLE else 1 for ours, theirs in _tables(config).items()}


def copies(config: ModelConfig) -> dict[str, str]:
  """Their names of arrays that a file may have once more, each with the name that it has in `names`."""
  target = _tables(config)["target_embedding/table"]
  stacks = [f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")] if config.share_embeddings else []
  return dict.fromkeys([*stacks, "lm_head.weight"], target)


def require(config: Config) -> None:
  """Raises InputError if the format cannot express the model."""
  only = {"pre_norm": False, "learned_positions": False, "attention_window": None, "share_logits": True}
  model = expressible.transformer(config, "marian-hf", only)
  if model.layer_norm_epsilon > _MOST_EPSILON:
    expressible.transformer(config, "marian-hf", {"layer_norm_epsilon": EPSILON})


def halves(d_model: int) -> np.ndarray:
  """Which of our dimensions is each of theirs, as the sines come first, then the cosines; the paper alternates (§3.5).

  `docs/interchange.md` shows why another order of the width makes the same model.

  >>> print(halves(6))
  [0 2 4 1 3 5]
  """
  return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def write(folder: Path, run: Run, model: Model) -> None:
  """Writes the folder: parameters, configurations, vocabulary, and a page about the model."""
  config = model.config.model
  assert isinstance(config, ModelConfig)
  ours = numpy_by_name(model.params)
  sides = [vocabulary.numbered(side) for side in (model.tokenizer.source, model.tokenizer.target)]
  theirs = _with_biases(renamed(ours, names(config), halves(config.d_model)))
  back = [np.argsort(side.order) for side in sides]
  for name, side in tables(config).items():
    theirs[name] = theirs[name][back[side]]
  theirs[BIAS] = ours.get("logits_bias", np.zeros(config.vocab_size, np.float32))[None, back[1]]
  for name, side in zip(SENTENCEPIECE, sides, strict=True):
    (folder / name).write_bytes(side.model)
  special = _special(config, sides[1])
  values = {
    "config.json": _config(model.config, config) | special,
    "generation_config.json": _generation_config(model.config, sides[1]) | special,
    "tokenizer_config.json": _tokenizer_config(model.config, sides[1]),
    **{name: _numbers(side) for name, side, _ in zip(VOCABULARIES, sides, config.vocab_sizes, strict=False)},
  }
  notes = [*_notes(config), *model_card.search_notes(model.config.decode)]
  for note in notes:
    say(note)
  usage = _USAGE.format(longest_source=model.config.decode.max_source_length)
  hf_folder.write(folder, theirs, values, model_card.card(run, model, usage, _HEADER, notes=notes))


def _notes(config: ModelConfig) -> list[str]:
  """Sentences about what `MarianMTModel` computes otherwise."""
  if config.layer_norm_epsilon == EPSILON:
    return []
  return [
    f"The epsilon of LayerNorm is always {EPSILON:g} in MarianMTModel and {config.layer_norm_epsilon:g} in the run, so "
    "logits differ slightly."
  ]


def _numbers(side: Numbered) -> dict[str, int]:
  return {piece: number for number, piece in enumerate(side.pieces)}


def _with_biases(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """The arrays, and for each projection of attention that has no bias a bias of 0."""
  weights = [name.removesuffix(".weight") for name in arrays if name.endswith("_proj.weight")]
  return {f"{name}.bias": np.zeros(len(arrays[f"{name}.weight"]), np.float32) for name in weights} | arrays


def _config(config: Config, model: ModelConfig) -> JsonObject:
  stacks = ("encoder", "decoder")
  return {
    "architectures": ["MarianMTModel"],
    "model_type": "marian",
    "vocab_size": model.vocab_sizes[0],
    "decoder_vocab_size": model.vocab_size,
    "d_model": model.d_model,
    "encoder_layers": model.encoder_depth,
    "decoder_layers": model.decoder_depth,
    **{f"{stack}_ffn_dim": model.d_ff for stack in stacks},
    **{f"{stack}_attention_heads": model.num_heads for stack in stacks},
    "activation_function": _ACTIVATIONS[model.activation],
    "dropout": model.dropout,
    "attention_dropout": model.attention_dropout,
    "activation_dropout": 0.0,
    "scale_embedding": True,
    "static_position_embeddings": True,
    "max_position_embeddings": _positions(config),
    "normalize_before": False,
    "normalize_embedding": False,
    "is_encoder_decoder": True,
    "share_encoder_decoder_embeddings": model.share_embeddings,
    "tie_word_embeddings": True,
    "forced_eos_token_id": None,  # that of generation_config.json counts
    "torch_dtype": "float32",
  }


def _positions(config: Config) -> int:
  return max(_POSITIONS, config.decode.max_source_length + config.decode.extra_length + 1)


def _generation_config(config: Config, numbered: Numbered) -> JsonObject:
  """The search of the run, as far as transformers have it."""
  decode, start = config.decode, config.model.start_token
  beam = {
    "length_penalty": decode.length_penalty,
    "early_stopping": True if decode.patience else "never",  # as many ended as there are beams; or none can be better
  }
  return {
    "num_beams": decode.beam_size,
    **(beam if decode.beam_size > 1 else {}),
    "max_length": _positions(config),
    "forced_eos_token_id": int(numbered.order[EOS]),  # at the limit, as here
    "suppress_tokens": sorted({int(numbered.order[token]) for token in (PAD, start)}),  # they are never emitted here
    **({"renormalize_logits": True} if decode.renormalize else {}),
  }


def _special(config: ModelConfig, numbered: Numbered) -> dict[str, int | None]:
  """The numbers there of the tokens that are no text."""
  pad, bos, eos, start = (int(numbered.order[token]) for token in (PAD, BOS, EOS, config.start_token))
  has_bos = config.start is Start.BOS
  return {
    "pad_token_id": pad,
    "bos_token_id": bos if has_bos else None,
    "eos_token_id": eos,
    "decoder_start_token_id": start,
  }


def _tokenizer_config(config: Config, numbered: Numbered) -> JsonObject:
  unk, eos, pad = (numbered.pieces[numbered.order[token]] for token in (UNK, EOS, PAD))
  source, target = directions_of(config.data)[0]
  return {
    "tokenizer_class": "MarianTokenizer",
    "source_lang": source,
    "target_lang": target,
    "unk_token": unk,
    "eos_token": eos,
    "pad_token": pad,
    "model_max_length": config.decode.max_source_length,
    "separate_vocabs": len(config.model.vocab_sizes) > 1,
    "clean_up_tokenization_spaces": False,  # it would take the space before a full stop away
    "split_special_tokens": True,  # a text with `</s>` in it has these letters
  }


_HEADER = {"library_name": "transformers", "pipeline_tag": "translation", "tags": ["marian", "transformer_jax"]}
_USAGE = """\
```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = MarianTokenizer.from_pretrained("."), MarianMTModel.from_pretrained(".")
found = model.generate(**tokenizer(["A sentence."], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(found, skip_special_tokens=True))
```

`transformer-jax translate` splits a line of more than {longest_source} tokens; this program does not."""

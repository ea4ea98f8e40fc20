"""The format `ctranslate2`, for the engine CTranslate2, through the library's own specification classes.

CTranslate2 takes any table of positions, so that the paper's interleaved sinusoids need no other order of the width.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config
from transformer_jax.interchange import expressible, model_card, vocabulary
from transformer_jax.model.config import Activation, ModelConfig
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.positional_encoding import sinusoids
from transformer_jax.model.special_tokens import BOS, EOS, UNK
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime import plugins
from transformer_jax.runtime.progress import say

_ACTIVATIONS = {
  Activation.RELU: "RELU",
  Activation.GELU: "GELU",
  Activation.GELU_TANH: "GELUTanh",
  Activation.SWISH: "SWISH",
}
# The library cuts longer inputs, unless it is told otherwise, as the page does.
_LONGEST_INPUT = 1024

_Arrays = dict[str, np.ndarray]

_NO_PATIENCE = (
  "The run's own search goes on until no hypothesis can become better (a patience of 0). With patience=1 "
  "CTranslate2 ends when as many hypotheses have ended as the beam holds, so its translations may differ."
)
_USAGE = """\
```python
import ctranslate2, sentencepiece

{load}
translator = ctranslate2.Translator(".")
found = translator.translate_batch(
  [{source}.encode(line, out_type=str) for line in ["A sentence."]], beam_size={beam}, patience={patience:g},
  length_penalty={penalty:g}, max_decoding_length={longest}, max_input_length=0,
)
print([{target}.decode(result.hypotheses[0]) for result in found])
```

`transformer-jax translate` splits a line of more than {longest_source} tokens; this program does not."""


def require(config: Config) -> None:
  """Raises InputError if the format cannot express the model, or the library is not installed."""
  expressible.transformer(config, "ctranslate2", {"attention_window": None})
  plugins.library(
    "ctranslate2",
    "the format ctranslate2 needs the library: pip install 'transformer_jax[ctranslate2]', or choose another --to",
  )


def write(folder: Path, run: Run, model: Model, quantization: str) -> None:
  """Writes the folder: the model, its vocabulary, the SentencePiece model, and a page about it."""
  config = model.config.model
  assert isinstance(config, ModelConfig)
  dtype = jnp.bfloat16 if quantization == "bfloat16" else np.float32  # the library would need torch to round
  arrays = numpy_by_name(model.params)
  spec = _spec(config, {name: x.astype(dtype) for name, x in (arrays | _positions(model, arrays)).items()})
  names = vocabulary.pieces(model.tokenizer.target)
  spec.register_source_vocabulary(vocabulary.pieces(model.tokenizer.source))
  spec.register_target_vocabulary(names)
  settings = {
    "layer_norm_epsilon": config.layer_norm_epsilon,
    "add_source_eos": True,
    **{"unk_token": names[UNK], "bos_token": names[BOS], "eos_token": names[EOS]},
    "decoder_start_token": names[config.start_token],
  }
  for name, value in settings.items():
    setattr(spec.config, name, value)
  spec.validate()
  spec.optimize(quantization)
  spec.save(str(folder))
  vocabulary.write_models(folder, model.tokenizer)
  (folder / "README.md").write_bytes(_card(run, model))


def _card(run: Run, model: Model) -> bytes:
  decode = model.config.decode
  values = {"beam": decode.beam_size, "patience": decode.patience or 1, "penalty": decode.length_penalty}
  values["longest_source"] = decode.max_source_length
  values["longest"] = decode.max_source_length + decode.extra_length
  usage = _USAGE.format(**values, **vocabulary.usage(model.tokenizer))
  header = {"library_name": "ctranslate2", "pipeline_tag": "translation"}
  notes = [_NO_PATIENCE] if decode.beam_size > 1 and not decode.patience else []
  notes += model_card.search_notes(decode)
  for note in notes:
    say(note)
  return model_card.card(run, model, usage, header, notes=notes)


def _positions(model: Model, arrays: _Arrays) -> _Arrays:
  """The encodings of the positions of both stacks, `[positions, model]`, under names of their own."""
  config, decode = model.config.model, model.config.decode
  assert isinstance(config, ModelConfig)
  stacks = {"encoder": "source_positions", "decoder": "target_positions"}
  if config.learned_positions:
    scale = config.d_model**0.5
    return {f"{stack}/positions": arrays[f"{name}/table"] * np.float32(scale) for stack, name in stacks.items()}
  longest = max(_LONGEST_INPUT, decode.max_source_length + decode.extra_length) + 2  # BOS, and EOS of a cut input
  table = np.asarray(sinusoids(jnp.arange(longest), config.d_model))
  return {f"{stack}/positions": table for stack in stacks}


def _spec(config: ModelConfig, arrays: _Arrays) -> Any:
  """The library's description of a model with these arrays."""
  common = import_module("ctranslate2.specs.common_spec")
  activation = getattr(common.Activation, _ACTIVATIONS[config.activation])
  made = import_module("ctranslate2.specs.transformer_spec").TransformerSpec
  layers = config.encoder_depth, config.decoder_depth
  spec = made.from_config(layers, config.num_heads, pre_norm=config.pre_norm, activation=activation)
  target = arrays["target_embedding/table"]
  spec.encoder.embeddings[0].weight = arrays.get("own_source_embedding/table", target)
  spec.decoder.embeddings.weight = target
  _set(spec.decoder.projection, arrays.get("own_output/table", target), arrays.get("logits_bias"))
  attentions = {
    "encoder": [("attention", "self_attention", 3)],
    "decoder": [("self_attention", "self_attention", 3), ("cross_attention", "attention", 2)],
  }
  for stack, kinds in attentions.items():
    theirs = getattr(spec, stack)
    theirs.position_encodings.encodings = arrays[f"{stack}/positions"]
    if config.pre_norm:
      _layer_norm(theirs.layer_norm, arrays, f"{stack}/norm")
    for number, layer in enumerate(theirs.layer):
      ours = f"{stack}/layers_{number}"
      for name, its_name, fused in kinds:
        _attention(getattr(layer, its_name), arrays, f"{ours}/{name}", fused)
      _feed_forward(layer.ffn, arrays, f"{ours}/feed_forward")
  return spec


def _attention(spec: Any, arrays: _Arrays, name: str, fused: int) -> None:
  """Projections of queries, keys and values, of which the last `fused` are one matrix, and of the output."""
  d_model = arrays[f"{name}/output/kernel"].shape[-1]
  inputs = [_linear(arrays, f"{name}/{part}", (d_model, -1)) for part in ("query", "key", "value")]
  outputs = _linear(arrays, f"{name}/output", (-1, d_model))
  alone, together = inputs[: 3 - fused], inputs[3 - fused :]
  weight = np.concatenate([weight for weight, _ in together])
  biases = [bias for _, bias in together if bias is not None]
  linears = [*alone, (weight, np.concatenate(biases) if biases else None), outputs]
  for linear, (weight, bias) in zip(spec.linear, linears, strict=True):
    _set(linear, weight, bias)
  _layer_norm(spec.layer_norm, arrays, f"{name.removesuffix('_attention')}_sublayer/norm")


def _linear(arrays: _Arrays, name: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray | None]:
  """A kernel as a matrix `[out, in]`, and its bias `[out]` if it has one; `shape` is `[in, out]`."""
  bias = arrays.get(f"{name}/bias")
  return arrays[f"{name}/kernel"].reshape(shape).T, None if bias is None else bias.reshape(-1)


def _feed_forward(spec: Any, arrays: _Arrays, name: str) -> None:
  for linear, part in ((spec.linear_0, "inner"), (spec.linear_1, "outer")):
    _set(linear, arrays[f"{name}/{part}/kernel"].T, arrays[f"{name}/{part}/bias"])
  _layer_norm(spec.layer_norm, arrays, f"{name}_sublayer/norm")


def _set(linear: Any, weight: np.ndarray, bias: np.ndarray | None) -> None:
  linear.weight = np.ascontiguousarray(weight)
  if bias is not None:
    linear.bias = bias


def _layer_norm(spec: Any, arrays: _Arrays, name: str) -> None:
  spec.gamma, spec.beta = arrays[f"{name}/scale"], arrays[f"{name}/bias"]

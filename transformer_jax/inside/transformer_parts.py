"""The Transformer of Figure 1 as boxes: the shapes of their arrays and their parameters, for a config."""

from transformer_jax.inside.layer_parts import Layers, notes
from transformer_jax.inside.parts import Box, ModelParts, Sizes, Stack, embedding
from transformer_jax.model.config import ModelConfig

# By whether the embeddings are shared, and the output layer.
_TABLES = {
  (True, True): "both embeddings and Linear",
  (True, False): "both embeddings",
  (False, True): "Output Embedding and Linear",
}


def transformer(model: ModelConfig) -> ModelParts:
  """The encoder and the decoder of a Transformer that translates."""
  sizes = Sizes(model)
  encoder, decoder = Layers(model, sizes, ("encoder",), "source"), Layers(model, sizes, ("decoder",), "target")
  stacks = (
    Stack(
      "encoder",
      "source tokens [source]",
      _inputs(model, sizes, "source"),
      model.encoder_depth,
      encoder.of_layer("attention"),
      encoder.final_norm(),
    ),
    Stack(
      "decoder",
      "target tokens, shifted right [target]",
      _inputs(model, sizes, "target"),
      model.decoder_depth,
      decoder.of_layer("self_attention", "cross_attention"),
      (*decoder.final_norm(), *_probabilities(model, sizes)),
    ),
  )
  return ModelParts(stacks, sizes.count(), _notes(model))


def _inputs(model: ModelConfig, sizes: Sizes, axis: str) -> tuple[Box, Box]:
  """The embedding of the tokens, and the positions that are added."""
  shape = f"[{axis}, {model.d_model}]"
  positions: tuple[str, ...] = (f"sinusoids: {shape}",)
  if model.learned_positions:
    positions = f"learned table [{model.max_positions}, {model.d_model}]", f"times √{model.d_model}: {shape}"
  return (
    embedding(model, sizes, axis, "target_embedding", shared=model.share_embeddings),
    Box("Add Positional Encoding", positions, sizes.count(f"{axis}_positions")),
  )


def _probabilities(model: ModelConfig, sizes: Sizes) -> tuple[Box, Box]:
  table = "the table of the target" if model.share_logits else f"table [{model.vocab_size}, {model.d_model}]"
  shape = f"[target, {model.vocab_size}]"
  parameters = sizes.count("own_output") + sizes.count("logits_bias")
  logits = f"logits {shape}{', with a bias' if model.logits_bias else ''}"
  return Box("Linear", (table, logits), parameters), Box("Softmax", (shape,))


def _notes(model: ModelConfig) -> tuple[str, ...]:
  tables = _TABLES.get((model.share_embeddings, model.share_logits))
  shared = (f"one table for {tables}",) if tables else ()
  return (*notes(model, "embedding + position"), *shared, f"matmuls in {model.dtype.value}")

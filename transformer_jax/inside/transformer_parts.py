"""The Transformer of Figure 1 as boxes: the shapes of their arrays and their parameters, for a config."""

from transformer_jax.inside.layer_parts import Layers, notes
from transformer_jax.inside.parts import Box, ModelParts, Sizes, Stack
from transformer_jax.model.config import ModelConfig

# By whether the embeddings are shared, and the output layer.
_TABLES = {
  (True, True): "both embeddings and Linear",
  (True, False): "both embeddings",
  (False, True): "Output Embedding and Linear",
}


def transformer(model: ModelConfig) -> ModelParts:
  """The encoder and the decoder of a Transformer that translates."""
  parts = _Parts(model)
  stacks = parts.encoder(), parts.decoder()
  return ModelParts(stacks, Sizes(model).count(), _notes(model))


class _Parts:
  """Makes the boxes of a config."""

  def __init__(self, model: ModelConfig):
    self._model, self._sizes = model, Sizes(model)

  def encoder(self) -> Stack:
    shared = self._model.share_embeddings
    layers = Layers(self._model, self._sizes, ("encoder",), "source")
    return Stack(
      "encoder",
      "source tokens [source]",
      (
        self._embedding("Input Embedding", "target_embedding" if shared else "own_source_embedding", "source"),
        self._positions("source"),
      ),
      self._model.encoder_depth,
      layers.of_layer("attention"),
      layers.final_norm(),
    )

  def decoder(self) -> Stack:
    model = self._model
    layers = Layers(model, self._sizes, ("decoder",), "target")
    embedding = self._embedding("Output Embedding", "target_embedding", "target")
    if model.share_embeddings:
      embedding = embedding._replace(lines=("the table of the input", embedding.lines[1]), parameters=0)
    return Stack(
      "decoder",
      "target tokens, shifted right [target]",
      (embedding, self._positions("target")),
      model.decoder_depth,
      layers.of_layer("self_attention", "cross_attention"),
      (*layers.final_norm(), *self._probabilities()),
    )

  def _embedding(self, name: str, module: str, axis: str) -> Box:
    model = self._model
    vocab = model.vocab_sizes[0 if axis == "source" else -1]
    table = f"table [{vocab}, {model.d_model}]"
    return Box(name, (table, f"times √{model.d_model}: [{axis}, {model.d_model}]"), self._sizes.count(module))

  def _positions(self, axis: str) -> Box:
    model = self._model
    kind = f"learned table [{model.max_positions}, {model.d_model}]" if model.learned_positions else "sinusoids"
    return Box(
      "Add Positional Encoding", (f"{kind}: [{axis}, {model.d_model}]",), self._sizes.count(f"{axis}_positions")
    )

  def _probabilities(self) -> tuple[Box, Box]:
    model = self._model
    table = "the table of the target" if model.share_logits else f"table [{model.vocab_size}, {model.d_model}]"
    shape = f"[target, {model.vocab_size}]"
    parameters = self._sizes.count("own_output") + self._sizes.count("logits_bias")
    return Box("Linear", (table, f"logits {shape}"), parameters), Box("Softmax", (shape,))


def _notes(model: ModelConfig) -> tuple[str, ...]:
  tables = _TABLES.get((model.share_embeddings, model.share_logits))
  shared = (f"one table for {tables}",) if tables else ()
  return (*notes(model, "embedding + position"), *shared, f"matmuls in {model.dtype.value}")

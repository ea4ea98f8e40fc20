"""GPT, BERT and ELMo as boxes: the shapes of their arrays and their parameters, for a config."""

from transformer_jax.inside.layer_parts import ACTIVATIONS, Layers, notes
from transformer_jax.inside.parts import Box, ModelParts, Sizes, Stack
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, BlocksConfig, ELMoConfig, GPTConfig


def gpt(model: GPTConfig) -> ModelParts:
  """GPT: one stack of masked self-attention."""
  sizes, width = Sizes(model), model.d_model
  layers = Layers(model.blocks, sizes, ("decoder",), "text")
  stack = Stack(
    "decoder",
    "tokens, shifted right [text]",
    _embeddings(model, sizes, (), "text"),
    model.num_layers,
    layers.of_layer("self_attention"),
    (
      *layers.final_norm(),
      Box("Linear", ("the table of the input", f"[text, {width}] → logits [text, {model.vocab_size}]")),
      Box("Softmax", (f"the next token: [text, {model.vocab_size}]",)),
    ),
  )
  return ModelParts((stack,), sizes.count(), _notes(model))


def bert(model: BERTConfig) -> ModelParts:
  """BERT: one stack of self-attention, and the output layers of pre-training or of classification."""
  sizes, width = Sizes(model), model.d_model
  layers = Layers(model.blocks, sizes, ("trunk", "encoder"), "text")
  sides = Box("Add Token Types", (f"table [2, {width}]: [text, {width}]",), sizes.count("trunk", "sides"))
  norm = Box("Norm", (f"[text, {width}]",), sizes.count("trunk", "embedding_norm"))
  classifies = isinstance(model, BERTClassifierConfig)
  final = layers.final_norm()
  encoder = Stack(
    "encoder",
    "tokens of one or two texts [text]",
    (*_embeddings(model, sizes, ("trunk",), "text"), sides, norm),
    model.num_layers,
    layers.of_layer("attention"),
    (*final, *(_classes(model, sizes) if classifies else _masked_tokens(model, sizes))),
    branch=None if classifies else len(final),
  )
  if classifies:
    return ModelParts((encoder,), sizes.count(), _notes(model))
  following = Stack("next sentence", "", (), 0, (), _next_sentence(model, sizes))
  return ModelParts((encoder, following), sizes.count(), _notes(model))


def elmo(model: ELMoConfig) -> ModelParts:
  """ELMo: a stack of LSTMs in each direction."""
  sizes = Sizes(model)
  left, right = (_direction(model, sizes, name) for name in ("forward", "backward"))
  dropout = (f"dropout {model.dropout:g} on the input of each LSTM",) if model.dropout else ()
  about = (
    "a layer's input is added to its output from layer 2 on",
    "features: a weighted mean of all layers, both directions beside",
    *dropout,
    f"matmuls in {model.dtype.value}",
  )
  return ModelParts((left, right), sizes.count(), about)


def _embeddings(model: BlocksConfig, sizes: Sizes, path: tuple[str, ...], axis: str) -> tuple[Box, ...]:
  width = model.d_model
  tokens = f"table [{model.vocab_size}, {width}]", f"[{axis}, {width}]"
  positions = f"learned table [{model.max_positions}, {width}]: [{axis}, {width}]"
  return (
    Box("Input Embedding", tokens, sizes.count(*path, "embedding")),
    Box("Add Position Embedding", (positions,), sizes.count(*path, "positions")),
  )


def _masked_tokens(model: BERTConfig, sizes: Sizes) -> tuple[Box, ...]:
  width = model.d_model
  activation = ACTIVATIONS[model.blocks.activation]
  logits = f"[masked, {width}] → logits [masked, {model.vocab_size}]"
  return (
    Box("Transform", ("the masked positions", f"{activation} → [masked, {width}]"), sizes.count("transform")),
    Box("Norm", (f"[masked, {width}]",), sizes.count("transform_norm")),
    Box("Linear", ("the table of the input, with a bias", logits), sizes.count("output_bias")),
    Box("Softmax", (f"the masked tokens: [masked, {model.vocab_size}]",)),
  )


def _pooler(model: BERTConfig, sizes: Sizes) -> Box:
  return Box("Pooler", ("the first position", f"tanh → [{model.d_model}]"), sizes.count("trunk", "pooler"))


def _next_sentence(model: BERTConfig, sizes: Sizes) -> tuple[Box, ...]:
  return (
    _pooler(model, sizes),
    Box("Linear", (f"[{model.d_model}] → logits [2]",), sizes.count("next")),
    Box("Softmax", ("the second text follows: [2]",)),
  )


def _classes(model: BERTClassifierConfig, sizes: Sizes) -> tuple[Box, ...]:
  classes = len(model.classes)
  return (
    _pooler(model, sizes),
    Box("Linear", (f"[{model.d_model}] → logits [{classes}]",), sizes.count("classifier")),
    Box("Softmax", (f"the classes: [{classes}]",)),
  )


def _direction(model: ELMoConfig, sizes: Sizes, name: str) -> Stack:
  """The stack of one direction; both have the same table."""
  width, forward = model.d_model, name == "forward"
  table = f"table [{model.vocab_size}, {width}]" if forward else "the same table"
  order = "from left to right" if forward else "from right to left"
  return Stack(
    name,
    "tokens [text]",
    (Box("Input Embedding", (table, f"[text, {width}]"), sizes.count("embedding") if forward else 0),),
    model.num_layers,
    ((Box("LSTM", (f"{order}, gates [text, {4 * width}]", f"h and c: [text, {width}]"), sizes.count(f"{name}_0")),),),
    (
      Box("Linear", ("the table of the input", f"logits [text, {model.vocab_size}]")),
      Box("Softmax", (f"the {'next' if forward else 'previous'} token: [text, {model.vocab_size}]",)),
    ),
    residual=False,
  )


def _notes(model: BlocksConfig) -> tuple[str, ...]:
  return (*notes(model.blocks, "the embeddings"), f"matmuls in {model.dtype.value}")

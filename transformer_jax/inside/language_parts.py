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
    _embeddings(model, sizes),
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
  final = layers.final_norm()
  if isinstance(model, BERTClassifierConfig):
    outputs, branch = _of_first_position(model, sizes, "classifier", len(model.classes), "the classes"), None
    others: tuple[Stack, ...] = ()
  else:
    outputs, branch = _masked_tokens(model, sizes), len(final)
    follows = _of_first_position(model, sizes, "next", 2, "the second text follows")
    others = (Stack("next sentence", "", (), 0, (), follows),)
  encoder = Stack(
    "encoder",
    "tokens of one or two texts [text]",
    (*_embeddings(model, sizes, "trunk"), sides, norm),
    model.num_layers,
    layers.of_layer("attention"),
    (*final, *outputs),
    branch=branch,
  )
  return ModelParts((encoder, *others), sizes.count(), _notes(model))


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


def _embeddings(model: BlocksConfig, sizes: Sizes, *path: str) -> tuple[Box, ...]:
  width = model.d_model
  tokens = f"table [{model.vocab_size}, {width}]", f"[text, {width}]"
  positions = f"learned table [{model.max_positions}, {width}]: [text, {width}]"
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


def _of_first_position(model: BERTConfig, sizes: Sizes, module: str, classes: int, what: str) -> tuple[Box, ...]:
  """The output layer that chooses one of some classes by the first position."""
  return (
    Box("Pooler", ("the first position", f"tanh → [{model.d_model}]"), sizes.count("trunk", "pooler")),
    Box("Linear", (f"[{model.d_model}] → logits [{classes}]",), sizes.count(module)),
    Box("Softmax", (f"{what}: [{classes}]",)),
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

"""The boxes of the Transformer's layers, which GPT and BERT have, too."""

from transformer_jax.inside.parts import Box, Sizes
from transformer_jax.model.config import Activation, ModelConfig

ACTIVATIONS = {
  Activation.RELU: "ReLU",
  Activation.GELU: "GELU",
  Activation.GELU_TANH: "GELU (tanh)",
  Activation.SWISH: "Swish",
}


def notes(config: ModelConfig, dropped: str) -> list[str]:
  """What the boxes of layers do not show, in lines; `dropped` is what has dropout besides the sub-layers."""
  norm = "x + f(Norm(x))" if config.pre_norm else "Norm(x + f(x))"
  found = [f"each sub-layer f: {norm}"]
  if config.dropout:
    found.append(f"dropout {config.dropout:g} on f(x), and on {dropped}")
  if config.attention_dropout:
    found.append(f"dropout {config.attention_dropout:g} on the attention weights")
  return [*found, "biases in the attention projections"] if config.attention_bias else found


class Layers:
  """Makes the boxes of a stack of layers.

  Args:
    config: the sizes of the layers.
    sizes: the parameters of the model.
    path: the place of the stack in the tree of parameters.
    axis: the name of its positions.
  """

  def __init__(self, config: ModelConfig, sizes: Sizes, path: tuple[str, ...], axis: str):
    self._config, self._sizes, self._path, self._axis = config, sizes, path, axis

  def of_layer(self, *attentions: str) -> tuple[tuple[Box, ...], ...]:
    """The sub-layers of one layer: attention by each of these modules, then the feed-forward network."""
    attended = [self._sublayer(module.removesuffix("_attention"), self._attention(module)) for module in attentions]
    return (*attended, self._sublayer("feed_forward", self._feed_forward()))

  def _attention(self, module: str) -> Box:
    """Multi-head attention over the stack's own positions, or over the source's."""
    config, query = self._config, self._axis
    crosses = module == "cross_attention"
    key = "source" if crosses else query
    heads, d_k, d_v = config.num_heads, config.head_dim_k, config.head_dim_v
    # Arrays of the same shape are named together.
    shapes: dict[str, list[str]] = {}
    for name, axis, width in (("Q", query, d_k), ("K", key, d_k), ("V", key, d_v)):
      shapes.setdefault(f"[{axis}, {heads}, {width}]", []).append(name)
    arrays = ", ".join(f"{', '.join(names)} {shape}" for shape, names in shapes.items())
    weights = f"weights [{heads}, {query}, {key}]"
    if config.attention_window is not None and not crosses:
      weights += f", at most {config.attention_window} apart"
    masked = "Masked " if module == "self_attention" else ""
    return Box(f"{masked}Multi-Head Attention", (arrays, weights), self._count(module), reads_memory=crosses)

  def _feed_forward(self) -> Box:
    """The feed-forward network."""
    config, axis = self._config, self._axis
    lines = (
      f"[{axis}, {config.d_model}] → [{axis}, {config.d_ff}]",
      f"{ACTIVATIONS[config.activation]} → [{axis}, {config.d_model}]",
    )
    return Box("Feed Forward", lines, self._count("feed_forward"))

  def _sublayer(self, name: str, box: Box) -> tuple[Box, ...]:
    """A sub-layer's boxes: LayerNorm(x + f(x)), or x + f(LayerNorm(x))."""
    shape = (f"[{self._axis}, {self._config.d_model}]",)
    parameters = self._count(f"{name}_sublayer")
    if self._config.pre_norm:
      return Box("Norm", shape, parameters), box, Box("Add", shape)
    return box, Box("Add & Norm", shape, parameters)

  def final_norm(self) -> tuple[Box, ...]:
    """The normalisation behind the last layer, if there is one."""
    if not self._config.pre_norm:
      return ()
    shape = (f"[{self._axis}, {self._config.d_model}]",)
    return (Box("Norm", shape, self._sizes.count(*self._path, "norm")),)

  def _count(self, module: str) -> int:
    return self._sizes.count(*self._path, "layers_0", module)

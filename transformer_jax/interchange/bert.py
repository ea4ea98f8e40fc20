"""The format `bert`: a folder for `BertModel`, `BertForPreTraining`, `BertForMaskedLM` of Hugging Face transformers.

A classifier becomes one for `BertForSequenceClassification`. Of a pair of texts, class 0 there is the second text that
follows the first, and class 1 a random one; here it is the other way round.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from transformer_jax.config import Config
from transformer_jax.interchange import expressible, hf_folder, hf_tokenizer, model_card
from transformer_jax.interchange.layout import Layout, Name, layer_norm, linear, of_layers, renamed
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig
from transformer_jax.model.config import Activation
from transformer_jax.model.params import by_name
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runs.run import Model, Run

ACTIVATIONS = {Activation.RELU: "relu", Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_pytorch_tanh"}

_OURS, _THEIRS = "trunk/encoder/layers_{}", "bert.encoder.layer.{}"
_LAYER = (
  *(
    name
    for part in ("query", "key", "value")
    for name in linear(f"{_OURS}/attention/{part}", f"{_THEIRS}.attention.self.{part}", Layout.FROM_MODEL)
  ),
  *linear(f"{_OURS}/attention/output", f"{_THEIRS}.attention.output.dense", Layout.TO_MODEL),
  *layer_norm(f"{_OURS}/attention_sublayer/norm", f"{_THEIRS}.attention.output.LayerNorm"),
  *linear(f"{_OURS}/feed_forward/inner", f"{_THEIRS}.intermediate.dense", Layout.FROM_MODEL),
  *linear(f"{_OURS}/feed_forward/outer", f"{_THEIRS}.output.dense", Layout.TO_MODEL),
  *layer_norm(f"{_OURS}/feed_forward_sublayer/norm", f"{_THEIRS}.output.LayerNorm"),
)
_EMBEDDINGS = (
  Name("trunk/embedding/table", "bert.embeddings.word_embeddings.weight", Layout.TABLE),
  Name("trunk/positions/table", "bert.embeddings.position_embeddings.weight", Layout.TABLE),
  Name("trunk/sides/table", "bert.embeddings.token_type_embeddings.weight", Layout.TABLE),
  *layer_norm("trunk/embedding_norm", "bert.embeddings.LayerNorm"),
)
_POOLER = (*linear("trunk/pooler", "bert.pooler.dense", Layout.FROM_MODEL),)
_PRE_TRAINING = (
  *linear("transform", "cls.predictions.transform.dense", Layout.FROM_MODEL),
  *layer_norm("transform_norm", "cls.predictions.transform.LayerNorm"),
  Name("output_bias", "cls.predictions.bias", Layout.VECTOR),
  *linear("next", "cls.seq_relationship", Layout.FROM_MODEL),
)
_CLASSIFIER = (*linear("classifier", "classifier", Layout.FROM_MODEL),)
_NEXT_FIRST = "cls.seq_relationship."  # the two classes have the other order there


def names(config: BERTConfig) -> list[Name]:
  """Every parameter of the model in both libraries."""
  heads = _CLASSIFIER if isinstance(config, BERTClassifierConfig) else _PRE_TRAINING
  return [*_EMBEDDINGS, *of_layers(_LAYER, config.num_layers), *_POOLER, *heads]


def with_classes_swapped(theirs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Their arrays with the two classes of a pair of texts in the other order; it is its own inverse."""
  return {
    name: np.ascontiguousarray(array[::-1]) if name.startswith(_NEXT_FIRST) else array for name, array in theirs.items()
  }


def require(config: Config) -> None:
  """Raises InputError if the format cannot express the model."""
  expressible.of_kind(config, BERTConfig, "bert", {"pre_norm": False})


def write(folder: Path, run: Run, model: Model) -> None:
  """Writes the folder: parameters, configuration, vocabulary, and a page about the model.

  Args:
    folder: an empty folder.
    run: the run.
    model: the run's model.

  Raises:
    InputError: the format cannot express the vocabulary.
  """
  config = model.config.model
  assert isinstance(config, BERTConfig)
  hf_tokenizer.require(model.tokenizer)
  ours = {name: np.asarray(x) for name, x in by_name(jax.device_get(model.params)).items()}
  theirs = with_classes_swapped(renamed(ours, names(config), np.arange(config.d_model)))
  classifies = isinstance(config, BERTClassifierConfig)
  header = {"pipeline_tag": "text-classification" if classifies else "fill-mask", **_HEADER}
  card = model_card.card(run, model, _USAGE.format(kind=_kind(config)), header)
  hf_folder.write(folder, theirs, {"config.json": _config(config)}, card)
  special = {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<unk>", "pad_token": "<pad>"}
  settings = {
    **special,
    "model_max_length": config.max_positions,
    "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
  }
  hf_tokenizer.write(folder, model.tokenizer, "<s> $A </s>", "<s> $A </s> $B:1 </s>:1", settings)


def _kind(config: BERTConfig) -> str:
  return "BertForSequenceClassification" if isinstance(config, BERTClassifierConfig) else "BertForPreTraining"


def _config(config: BERTConfig) -> dict[str, Any]:
  labels = config.classes if isinstance(config, BERTClassifierConfig) else []
  of_labels = {
    "id2label": {str(number): label for number, label in enumerate(labels)},
    "label2id": {label: number for number, label in enumerate(labels)},
  }
  return {
    "architectures": [_kind(config)],
    "model_type": "bert",
    "vocab_size": config.vocab_size,
    "hidden_size": config.d_model,
    "num_hidden_layers": config.num_layers,
    "num_attention_heads": config.num_heads,
    "intermediate_size": config.d_ff,
    "hidden_act": ACTIVATIONS[config.activation],
    "hidden_dropout_prob": config.dropout,
    "attention_probs_dropout_prob": config.attention_dropout,
    "max_position_embeddings": config.max_positions,
    "type_vocab_size": 2,
    "layer_norm_eps": config.layer_norm_epsilon,
    "tie_word_embeddings": True,
    "pad_token_id": PAD,
    "torch_dtype": "float32",
    **(of_labels if labels else {}),
  }


_HEADER = {"library_name": "transformers", "tags": ["bert", "transformer_jax"]}
_USAGE = """\
```python
from transformers import AutoTokenizer, {kind}

tokenizer, model = AutoTokenizer.from_pretrained("."), {kind}.from_pretrained(".")
print(model(**tokenizer("A sentence.", return_tensors="pt")))
```"""

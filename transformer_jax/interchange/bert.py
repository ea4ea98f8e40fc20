"""The format `bert`: a folder for `BertModel`, `BertForPreTraining`, `BertForMaskedLM` of Hugging Face transformers.

A classifier becomes one for `BertForSequenceClassification`. Of a pair of texts, class 0 there is the second text that
follows the first, and class 1 a random one; here it is the other way round.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer_jax.config import Config
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.interchange import expressible, hf_folder, hf_tokenizer, hf_vocabulary, layout, model_card
from transformer_jax.interchange.foreign_folder import ForeignFolder, Weights
from transformer_jax.interchange.import_ import Imported
from transformer_jax.interchange.layout import Layout, Name, layer_norm, linear
from transformer_jax.interchange.settings import Settings
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import JsonObject
from transformer_jax.training.initialization import shapes_of

_SIZES = {
  "vocab_size": ("vocab_size", 30522),
  "d_model": ("hidden_size", 768),
  "num_layers": ("num_hidden_layers", 12),
  "num_heads": ("num_attention_heads", 12),
  "d_ff": ("intermediate_size", 3072),
}
_POSITIONS = {"max_positions": ("max_position_embeddings", 512)}  # stands apart in config.json, as in `BertConfig`
_DROPOUTS = {"dropout": "hidden_dropout_prob", "attention_dropout": "attention_probs_dropout_prob"}
# What the model here has one value of.
_ONLY = {
  "model_type": "bert",
  "position_embedding_type": "absolute",
  "type_vocab_size": 2,
  "is_decoder": False,
  "add_cross_attention": False,
  "tie_word_embeddings": True,
}

_CLASSES = (
  "BertModel",
  "BertForPreTraining",
  "BertForMaskedLM",
  "BertForNextSentencePrediction",
  "BertForSequenceClassification",
)

_OURS, _THEIRS = "trunk/encoder/layers_{}", "bert.encoder.layer.{}"
_LAYER = (
  *linear(f"{_OURS}/attention/query", f"{_THEIRS}.attention.self.query", Layout.FROM_MODEL),
  *linear(f"{_OURS}/attention/key", f"{_THEIRS}.attention.self.key", Layout.FROM_MODEL),
  *linear(f"{_OURS}/attention/value", f"{_THEIRS}.attention.self.value", Layout.FROM_MODEL),
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
_ROWS = ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias")  # a row for each piece
_TWICE = {
  "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
  "cls.predictions.decoder.bias": "cls.predictions.bias",
}
_NEXT_FIRST = "cls.seq_relationship."  # the two classes have the other order there


def names(config: BERTConfig) -> list[Name]:
  """Every parameter of the model in both libraries."""
  heads = _CLASSIFIER if isinstance(config, BERTClassifierConfig) else _PRE_TRAINING
  return [*_EMBEDDINGS, *layout.of_layers(_LAYER, config.num_layers), *_POOLER, *heads]


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

  Raises:
    InputError: the format cannot express the vocabulary.
  """
  config = model.config.model
  assert isinstance(config, BERTConfig)
  hf_tokenizer.require(model.tokenizer, "bert")
  ours = numpy_by_name(model.params)
  theirs = with_classes_swapped(layout.renamed(ours, names(config), np.arange(config.d_model)))
  order = _order(model.tokenizer, config)
  rows = np.argsort(order)
  theirs |= {name: np.ascontiguousarray(theirs[name][rows]) for name in _ROWS if name in theirs}
  classifies = isinstance(config, BERTClassifierConfig)
  header = {"pipeline_tag": "text-classification" if classifies else "fill-mask", **_HEADER}
  card = model_card.card(run, model, _USAGE.format(kind=_kind(config)), header)
  hf_folder.write(folder, theirs, {"config.json": _config(config) | {"pad_token_id": order[PAD]}}, card)
  settings = {
    "model_max_length": hf_folder.max_length(model.config),
    "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
  }
  if isinstance(model.tokenizer, SubwordTokenizer):
    hf_tokenizer.write_subwords(folder, model.tokenizer.vocabulary, settings)
    return
  special = {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<unk>", "pad_token": "<pad>"}
  single = ["<s>", "$A", "</s>"]
  hf_tokenizer.write(folder, model.tokenizer, single, [*single, ("$B", 1), ("</s>", 1)], special | settings)


def _order(tokenizer: Tokenizer, config: BERTConfig) -> list[int]:
  """The number there of each of our pieces."""
  return tokenizer.vocabulary.order if isinstance(tokenizer, SubwordTokenizer) else [*range(config.vocab_size)]


def read(folder: ForeignFolder) -> Imported:
  """The model of a folder; layers of pre-training that it does not have are new.

  Raises:
    InputError: the folder is damaged, or the model is one that cannot be had here.
  """
  with hf_folder.opened(folder, _ONLY, _usual) as (settings, weights):
    model = _model(settings, weights)
    config = hf_folder.config(model, folder)
    shapes, table = shapes_of(config), names(model)
    wanted = layout.shapes_there(shapes, table)
    new = _missing(wanted, weights, isinstance(model, BERTClassifierConfig))
    there = {name: shape for name, shape in wanted.items() if name not in new}
    weights.require(there, _TWICE)
    arrays = {name: weights.array(name) for name in there} | _random(new, wanted)
  tokenizer = hf_vocabulary.exported(folder, model.vocab_size) or hf_vocabulary.wordpiece(folder, model.vocab_size)
  rows = _order(tokenizer, model)
  arrays = with_classes_swapped(arrays) | {name: arrays[name][rows] for name in _ROWS if name in arrays}
  arrays = layout.renamed_back(arrays, table, np.arange(model.d_model), shapes)
  notes = hf_vocabulary.notes(folder)
  if new:
    notes += (f"{folder.path} has no {', '.join(sorted(new))}: they are new, and say nothing before they are trained",)
  return Imported(config, arrays, tokenizer, notes)


def _usual(name: str) -> str | None:
  """The name that the library uses today, `bert.` of the trunk included; None for an array that is no parameter."""
  name = re.sub(r"LayerNorm\.(gamma|beta)$", lambda found: _WORDS[found[1]], name)
  name = name if name.startswith(("bert.", "cls.", "classifier.")) else f"bert.{name}"
  return None if name == "bert.embeddings.position_ids" else name


_WORDS = {"gamma": "LayerNorm.weight", "beta": "LayerNorm.bias"}


def _model(settings: Settings, weights: Weights) -> BERTConfig:
  kind: type[BERTConfig] = BERTConfig
  options: JsonObject = {ours: settings.number(theirs, 0.1) for ours, theirs in _DROPOUTS.items()}
  # A model that labels each token, for example, can have arrays of the same names as one that labels a text.
  named = settings.value("architectures") or [_CLASSES[0]]
  if named not in [[name] for name in _CLASSES]:
    found = f"{named[0]!s:.80}" if isinstance(named, list) and len(named) == 1 else f"a {type(named).__name__}"
    raise InputError(f"{settings.path}: architectures names {found}, but the format takes {', '.join(_CLASSES)}")
  if "classifier.weight" in weights.shapes:
    settings.require("problem_type", ["single_label_classification"])
    shape = weights.shapes["classifier.weight"]
    kind, options["labels"] = BERTClassifierConfig, _labels(settings, shape[0] if shape else 0)
  return hf_folder.model(
    kind,
    settings,
    **hf_folder.sizes(settings, _SIZES | _POSITIONS, weights),
    activation=hf_folder.activation(settings, "hidden_act", "gelu"),
    layer_norm_epsilon=settings.number("layer_norm_eps", 1e-12),
    **options,
  )


def _labels(settings: Settings, count: int) -> str:
  """The names of the classes, separated by commas."""
  names = settings.value("id2label", {str(number): f"LABEL_{number}" for number in range(2)})
  labels: list[Any] = (
    [names.get(str(n)) for n in range(count)] if isinstance(names, dict) and len(names) == count else []
  )
  if not labels or not all(isinstance(label, str) and "," not in label and label == label.strip() for label in labels):
    raise settings.wrong("id2label", f"the names of {count} classes, without commas")
  return ",".join(labels)


def _missing(wanted: Mapping[str, object], weights: Weights, classifies: bool) -> list[str]:
  """The parameters of pre-training alone that are not there; a classifier has none of them."""
  if classifies:
    return []
  later = {name.theirs for name in (*_POOLER, *_PRE_TRAINING)}
  return [name for name in wanted if name in later and name not in weights.shapes]


def _random(names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
  """New parameters, as `train` draws them: N(0, 0.02^2), 0 for biases and 1 for scales."""
  generator, found = np.random.default_rng(0), {}
  for name in names:
    matrix = 0.02 * generator.standard_normal(shapes[name]) if len(shapes[name]) > 1 else np.zeros(shapes[name])
    found[name] = (matrix + name.endswith("LayerNorm.weight")).astype(np.float32)
  return found


def _kind(config: BERTConfig) -> str:
  return "BertForSequenceClassification" if isinstance(config, BERTClassifierConfig) else "BertForPreTraining"


def _config(config: BERTConfig) -> JsonObject:
  labels = config.classes if isinstance(config, BERTClassifierConfig) else []
  of_labels = {
    "id2label": {str(number): label for number, label in enumerate(labels)},
    "label2id": {label: number for number, label in enumerate(labels)},
  }
  return {
    "architectures": [_kind(config)],
    "model_type": "bert",
    **hf_folder.sizes_there(config, _SIZES),
    "hidden_act": hf_folder.ACTIVATIONS[config.activation],
    "hidden_dropout_prob": config.dropout,
    "attention_probs_dropout_prob": config.attention_dropout,
    **hf_folder.sizes_there(config, _POSITIONS),
    "type_vocab_size": 2,
    "layer_norm_eps": config.layer_norm_epsilon,
    "tie_word_embeddings": True,
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

"""The format `marian-hf` read: a folder for `MarianMTModel` of Hugging Face transformers, such as those of OPUS-MT.

The width is put into our order (`marian_hf.halves`) and the vocabulary too: here the special pieces have the first
numbers. Both only move numbers, so that the export gives back the same bits.
"""

import numpy as np

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, LengthPenalty
from transformer_jax.config.experiment import MOST_ALPHA, MOST_BEAMS, MOST_EXTRA
from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.sentencepiece_tokenizer import LARGEST
from transformer_jax.data.tokenizer import is_piece
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.interchange import hf_folder, marian_hf
from transformer_jax.interchange.foreign_folder import ForeignFolder, Weights
from transformer_jax.interchange.import_ import Imported
from transformer_jax.interchange.layout import renamed_back, shapes_there
from transformer_jax.interchange.settings import Settings
from transformer_jax.model.config import ModelConfig, Start
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json, JsonObject
from transformer_jax.training.initialization import shapes_of

# What the model here has no other value of. A setting that is missing or null has the first one.
_ONLY: dict[str, tuple[Json, ...]] = {
  "normalize_before": (False,),
  "normalize_embedding": (False,),
  "add_final_layer_norm": (False,),
  "static_position_embeddings": (True,),
  "is_encoder_decoder": (True,),
  "tie_word_embeddings": (True,),
}
_SEARCH_ONLY: dict[str, tuple[Json, ...]] = {
  "do_sample": (False,),
  "num_beam_groups": (1,),
  "diversity_penalty": (0, 0.0),
  "repetition_penalty": (1, 1.0),
  "no_repeat_ngram_size": (0,),
  "encoder_no_repeat_ngram_size": (0,),
  "encoder_repetition_penalty": (1, 1.0),
  "guidance_scale": (1, 1.0),
  "min_length": (0,),
  "min_new_tokens": (0,),
  "num_return_sequences": (1,),
}
_NEVER = (
  "forced_bos_token_id",
  "begin_suppress_tokens",
  "sequence_bias",
  "exponential_decay_length_penalty",
  "max_new_tokens",
  "max_time",
  "force_words_ids",
  "stop_strings",
  "penalty_alpha",
)
_SEARCH, _START = "generation_config.json", "decoder_start_token_id"
_SOURCE_LENGTH = 256  # the longest input that is translated as a whole

_ROUNDING = {"F32": 2**-23, "F16": 2**-10, "BF16": 2**-7}  # the spacing of numbers at 1

_Lists = tuple[PieceList, PieceList]  # those of the source and of the target, which may be one


def read(folder: ForeignFolder) -> Imported:
  """The model of a folder.

  Raises:
    InputError: the folder is damaged, or has what the model here cannot express.
  """
  made, pieces, notes = described(folder)
  with folder.weights() as weights:
    arrays = _arrays(made, pieces, weights)
  sides = [
    ListedTokenizer(folder.bytes(name, LARGEST), own, str(folder.path / name))
    for name, own in zip(marian_hf.SENTENCEPIECE, pieces, strict=True)
  ]
  return Imported(made, arrays, TokenizerPair(*sides), notes)


def described(folder: ForeignFolder) -> tuple[Config, _Lists, tuple[str, ...]]:
  """What the JSON files of a folder say: the config of the run, the vocabularies, and sentences about what differs.

  Raises:
    InputError: as in `read`.
  """
  config, generation = folder.settings("config.json"), folder.settings(_SEARCH, optional=True)
  texts = folder.settings("tokenizer_config.json", optional=True)
  if config.text("model_type", "") != "marian":
    raise config.wrong("model_type", "'marian', as of MarianMTModel")
  pieces = _pieces(folder, config, generation if _START in generation else config, texts)
  model = _model(config, pieces)
  search = generation if folder.has(_SEARCH) else config  # that of a folder of an older version
  decode, notes = _decode(search, config, pieces[1])
  source, target = _languages(texts)
  data = DataConfig(corpus=Corpus.TEXT, train="", validation="", source_language=source, target_language=target)
  return Config(data=data, model=model, decode=decode), pieces, notes


def _model(config: Settings, pieces: _Lists) -> ModelConfig:
  for name, only in _ONLY.items():
    config.require(name, only)
  if not config.truth("scale_embedding", False):
    raise config.wrong("scale_embedding", "True: the model here multiplies its embeddings by sqrt(d_model)")
  sizes = {}
  layers = [config.integer(f"{stack}_layers", least=1) for stack in ("encoder", "decoder")]
  sizes["num_layers"] = layers[0]
  if layers[0] != layers[1]:
    sizes["encoder_layers"], sizes["decoder_layers"] = layers
  for ours, name in {"d_ff": "ffn_dim", "num_heads": "attention_heads"}.items():
    sizes[ours] = config.integer(f"encoder_{name}", least=1)
    config.require(f"decoder_{name}", [sizes[ours]], "encoder and decoder have the same sizes here")
  width = config.integer("d_model", least=2)
  if width % 2 or width % sizes["num_heads"]:
    raise config.wrong("d_model", "even, and a multiple of encoder_attention_heads")
  return ModelConfig(
    **_vocabularies(config, pieces),
    d_model=width,
    **sizes,
    dropout=_rate(config, "dropout", 0.1),
    attention_dropout=_rate(config, "attention_dropout", 0.0),
    attention_bias=True,
    activation=hf_folder.activation(config, "activation_function", "gelu"),
    layer_norm_epsilon=marian_hf.EPSILON,
    logits_bias=True,
    start=Start.PAD if pieces[1].bos is None else Start.BOS,
  )


def _vocabularies(config: Settings, pieces: _Lists) -> JsonObject:
  """The part of the model's config that says how large the vocabularies are, and whether they share a table."""
  source, target = (len(side.pieces) for side in pieces)
  separate = pieces[0] is not pieces[1]
  if config.integer("vocab_size", least=1) != source:
    raise config.wrong("vocab_size", f"{source}, the tokens in {marian_hf.VOCABULARIES[0]}")
  if config.integer("decoder_vocab_size", source) != target:
    raise config.wrong("decoder_vocab_size", f"{target}, the tokens in {marian_hf.VOCABULARIES[separate]}")
  shared = config.truth("share_encoder_decoder_embeddings", True)
  if separate and shared:
    raise config.wrong("share_encoder_decoder_embeddings", "False, as separate_vocabs is True in tokenizer_config.json")
  sizes = {"source_vocab_size": source} if separate else {}
  return {"vocab_size": target, **sizes, "share_embeddings": shared}


def _rate(config: Settings, name: str, default: float) -> float:
  rate = config.number(name, default)
  if not 0 <= rate < 1:
    raise config.wrong(name, "at least 0 and below 1")
  return rate


def _pieces(folder: ForeignFolder, config: Settings, begins: Settings, texts: Settings) -> _Lists:
  """The vocabulary of each side, and which of its pieces are special."""
  texts.require("sp_model_kwargs", [{}])
  separate = texts.truth("separate_vocabs", False)
  pieces = _names(folder, marian_hf.VOCABULARIES[separate])
  last = len(pieces) - 1
  pad, eos = (pieces[config.integer(f"{name}_token_id", most=last)] for name in ("pad", "eos"))
  start = pieces[begins.integer(_START, most=last)]
  unk = texts.token("unk_token", "<unk>")
  if texts.token("eos_token", eos) != eos:
    raise texts.wrong("eos_token", f"{eos!r:.80}: the model here has nothing else")
  if unk not in pieces or len({pad, eos, unk}) < 3 or start in (eos, unk):
    raise InputError(
      f"{config.path}: pad_token_id, eos_token_id, decoder_start_token_id and {unk!a:.40} are not different tokens of "
      f"{marian_hf.VOCABULARIES[separate]}: the model here needs that"
    )
  target = PieceList(tuple(pieces), pad, unk, eos, None if start == pad else start)
  if not separate:
    return target, target
  of_source = _names(folder, marian_hf.VOCABULARIES[0])
  if missing := {pad, unk, eos}.difference(of_source):
    raise InputError(
      f"{folder.path / marian_hf.VOCABULARIES[0]} has no {min(missing)!a:.40}, which {marian_hf.VOCABULARIES[1]} has: "
      "take all files from one folder"
    )
  return PieceList(tuple(of_source), pad, unk, eos), target


def _names(folder: ForeignFolder, name: str) -> list[str]:
  """The pieces that a file numbers, in their order."""
  vocabulary = folder.settings(name)
  pieces = vocabulary.all()
  numbers = [number for number in pieces.values() if isinstance(number, int) and not isinstance(number, bool)]
  if sorted(numbers) != list(range(max(4, len(pieces)))) or not all(map(is_piece, pieces)):
    raise InputError(f"{vocabulary.path} does not number its tokens 0, 1, 2 and so on, each once: copy it again")
  return sorted(pieces, key=lambda piece: pieces[piece])


def _languages(texts: Settings) -> tuple[str, str]:
  found = [texts.value(f"{side}_lang") for side in ("source", "target")]
  good = all(isinstance(code, str) and code and code.isprintable() and len(code) < 40 for code in found)
  return (found[0], found[1]) if good and found[0] != found[1] else ("source", "target")


def _decode(search: Settings, config: Settings, pieces: PieceList) -> tuple[DecodeConfig, tuple[str, ...]]:
  """The search here of the one there, and sentences about what differs."""
  for name, only in {**_SEARCH_ONLY, **dict.fromkeys(_NEVER, ())}.items():
    search.require(name, only, "the search here has nothing else")
  eos, pad = (pieces.pieces.index(piece) for piece in (pieces.eos, pieces.pad))
  for name in ("eos_token_id", "forced_eos_token_id"):
    search.require(name, [eos, [eos]], "the search here ends with EOS, as config.json has it")
  search.require("pad_token_id", [pad], "config.json has that")
  _require_suppressed(search, pieces)
  beam = search.integer("num_beams", 1, least=1, most=MOST_BEAMS)
  alpha = search.number("length_penalty", 1.0)
  if not 0 <= alpha <= MOST_ALPHA:
    raise search.wrong("length_penalty", f"from 0 to {MOST_ALPHA}")
  early = search.value("early_stopping", False)
  positions = config.integer("max_position_embeddings", 1024, least=4)
  longest = search.integer("max_length", positions, least=4) - 1  # it counts the first token
  source = min(_SOURCE_LENGTH, longest // 2 + 1)
  decode = DecodeConfig(
    beam_size=beam,
    length_penalty=alpha,
    penalty=LengthPenalty.FAIRSEQ,
    patience=0.0 if early == "never" else 1.0,
    renormalize=search.truth("renormalize_logits", False),
    extra_length=min(longest - source, MOST_EXTRA),
    max_source_length=source,
  )
  notes = (
    "early_stopping is false, which is not known here: a search ends as with true, when as many hypotheses have "
    "ended as there are beams (config.decode.patience=1)",
  )
  return decode, notes if beam > 1 and early is False else ()


def _require_suppressed(search: Settings, pieces: PieceList) -> None:
  """Only tokens that are never emitted here may be forbidden, and the one that begins must be."""
  forbidden, never = set(), {pieces.pieces.index(piece) for piece in (pieces.pad, pieces.bos) if piece is not None}
  for name in ("bad_words_ids", "suppress_tokens"):
    found = search.value(name, []) or []
    listed = found if isinstance(found, list) else [found]
    flat = [word[0] if isinstance(word, list) and len(word) == 1 else word for word in listed]
    if listed is not found or not all(isinstance(word, int) and word in never for word in flat):
      raise search.wrong(name, f"of {sorted(never)}: no other token can be forbidden here")
    forbidden.update(flat)
  if pieces.bos is not None and pieces.pieces.index(pieces.bos) not in forbidden:
    raise search.wrong("bad_words_ids", "a list with decoder_start_token_id, which is never emitted here")


def _arrays(config: Config, pieces: _Lists, weights: Weights) -> dict[str, np.ndarray]:
  """The parameters by our names."""
  model = config.model
  assert isinstance(model, ModelConfig)
  if max(model.encoder_depth, model.decoder_depth) > len(weights.shapes):
    raise InputError(f"{weights.path} has fewer arrays than the model has layers: take all files from one folder")
  shapes, names = shapes_of(config), marian_hf.names(model)
  expected = {**shapes_there(shapes, names), marian_hf.BIAS: (1, model.vocab_size)}
  positions = {name for name in weights.shapes if name.endswith(".embed_positions.weight")}
  for name in positions:
    _require_sinusoids(weights, name, model.d_model)
  weights = weights.under({name: name for name in weights.shapes.keys() - positions})
  weights.require(expected, marian_hf.copies(model))
  theirs = {name: weights.array(name) for name in expected}
  orders = [side.order() for side in pieces]
  for name, side in marian_hf.tables(model).items():
    theirs[name] = theirs[name][orders[side]]
  found = renamed_back(theirs, names, marian_hf.halves(model.d_model), shapes)
  return found | {"logits_bias": theirs[marian_hf.BIAS].reshape(-1)[orders[1]]}


def _require_sinusoids(weights: Weights, name: str, d_model: int) -> None:
  """A table of positions may be there if it is that of the formula."""
  shape = weights.shapes[name]
  fits = len(shape) == 2 and shape[1] == d_model
  if fits:
    found, positions = weights.array(name), np.arange(shape[0])[:, None]
    angles = positions / 10_000 ** (np.arange(0, d_model, 2) / d_model)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    # Rounding to the file's type, and of the angle if it was computed in float32.
    tolerance = _ROUNDING[weights.type_of(name)] + _ROUNDING["F32"] * positions
    fits = bool(np.all(np.abs(found - table) <= tolerance))
  if not fits:
    raise InputError(
      f"{weights.path}: {name} holds learned positions, but the model here has sinusoids for this format"
    )

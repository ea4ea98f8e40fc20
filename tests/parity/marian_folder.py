"""Folders of `MarianMTModel` with random weights, as OPUS-MT has them, made by transformers itself."""

import functools
import io
import json
import random
from pathlib import Path
from typing import Any

import sentencepiece

LANGUAGES = {"source": "abcdefgh", "target": "efghijkl"}


@functools.cache
def lines(side: str) -> list[str]:
  """Lines of a made-up language; two words are in both."""
  generator = random.Random(side)
  words = ["".join(generator.choices(LANGUAGES[side], k=generator.randint(1, 5))) for _ in range(23)] + ["fe", "gh"]
  return [" ".join(generator.choices(words, k=generator.randint(1, 6))) for _ in range(37)]


@functools.cache
def sentencepiece_model(side: str) -> bytes:
  """A unigram model with the library's own normalisation, as OPUS-MT's are."""
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines(side)), model_writer=model, vocab_size=41, hard_vocab_limit=False, minloglevel=3
  )
  return model.getvalue()


@functools.cache
def pieces(*sides: str, missing: int = 3) -> list[str]:
  """A vocabulary of one or both sides: </s>, <unk>, pieces in an order of their own, a code of a language, <pad>.

  So many `missing` pieces of the SentencePiece models are not in it.
  """
  found = set()
  for side in sides:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(side))  # pyright: ignore[reportCallIssue]
    found |= {processor.id_to_piece(i) for i in range(3, processor.vocab_size())}
  ordinary = sorted(found)[missing:]
  random.Random(0).shuffle(ordinary)
  return ["</s>", "<unk>", *ordinary, ">>xx<<", "<pad>"]


def write(
  folder: Path, search: dict[str, Any] | None = None, *, separate: bool = False, pad: float = 0.1, **options: Any
) -> Any:
  """Writes a folder and returns its model.

  Args:
    folder: where to.
    search: settings of the search.
    separate: whether each side has a vocabulary of its own.
    pad: the size of PAD's embedding. With 0, as OPUS-MT has it, the decoder begins with zeros.
    options: of `MarianConfig`.
  """
  import torch
  from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

  folder.mkdir(parents=True, exist_ok=True)
  # The number of the target's PAD must be one of the source's pieces, too: torch asks for it.
  vocabularies = [pieces("source"), pieces("target", missing=7)] if separate else [pieces(*LANGUAGES)]
  names = ("vocab.json", "target_vocab.json")[: len(vocabularies)]
  for name, vocabulary in zip(names, vocabularies, strict=True):
    (folder / name).write_text(json.dumps({piece: number for number, piece in enumerate(vocabulary)}))
  for side in LANGUAGES:
    (folder / f"{side}.spm").write_bytes(sentencepiece_model(side))
  files = [str(folder / name) for name in ("source.spm", "target.spm", *names)]
  MarianTokenizer(*files, source_lang="xx", target_lang="yy", separate_vocabs=separate).save_pretrained(folder)
  last = len(vocabularies[-1]) - 1
  settings = {
    **{"vocab_size": len(vocabularies[0]), "decoder_vocab_size": last + 1},
    **{"d_model": 22, "max_position_embeddings": 128, "scale_embedding": True},
    **{f"{stack}_layers": 2 for stack in ("encoder", "decoder")},
    **{f"{stack}_ffn_dim": 29 for stack in ("encoder", "decoder")},
    **{f"{stack}_attention_heads": 2 for stack in ("encoder", "decoder")},
    **{"activation_function": "swish", "pad_token_id": last, "eos_token_id": 0, "decoder_start_token_id": last},
    **{"forced_eos_token_id": 0, "init_std": 0.4, "static_position_embeddings": True, "normalize_before": False},
    **options,
  }
  torch.manual_seed(0)
  model = MarianMTModel(MarianConfig(**settings)).eval()
  with torch.no_grad():
    _make_it_end(model, settings["d_model"], pad)
  beams = {"num_beams": 4, "length_penalty": 0.8, "early_stopping": True} if search is None else search
  start = settings["decoder_start_token_id"]
  model.generation_config = GenerationConfig(
    **{"max_length": 64, "pad_token_id": last, "eos_token_id": 0, "decoder_start_token_id": start},
    **{"forced_eos_token_id": 0, "bad_words_ids": [[token] for token in sorted({last, start})], **beams},
  )
  model.save_pretrained(folder)
  return model


def _make_it_end(model: Any, width: int, pad: float) -> None:
  """Weights with which translations end after some tokens: what sub-layers add is small, and EOS is a late position."""
  import torch

  for name, values in model.named_parameters():
    if values.ndim == 1:
      values.add_(0.1 * torch.randn_like(values))
    if name.endswith(("out_proj.weight", "fc2.weight")):
      values.mul_(0.3)
  model.final_logits_bias.normal_(std=0.3)
  model.final_logits_bias[0, 0] = 1
  for table in dict.fromkeys([model.get_output_embeddings().weight, model.get_input_embeddings().weight]):
    table.mul_(0.25)
    table[0] = 0
    table[0, 2], table[0, width // 2 + 2] = 2, -2  # the sine and cosine of one wave
    table[model.config.pad_token_id].normal_(std=pad)

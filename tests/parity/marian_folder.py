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
def pieces() -> list[str]:
  """One vocabulary of both sides: </s>, <unk>, pieces in an order of their own, a code of a language, <pad>.

  Some pieces of the SentencePiece models are not in it.
  """
  found = set()
  for side in LANGUAGES:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(side))  # pyright: ignore[reportCallIssue]
    found |= {processor.id_to_piece(i) for i in range(3, processor.vocab_size())}
  ordinary = sorted(found)[3:]
  random.Random(0).shuffle(ordinary)
  return ["</s>", "<unk>", *ordinary, ">>xx<<", "<pad>"]


def write(folder: Path, search: dict[str, Any] | None = None, pad: float = 0.1, **options: Any) -> Any:
  """Writes a folder and returns its model; the row of PAD is of size `pad`, and `options` are of `MarianConfig`."""
  import torch
  from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

  folder.mkdir(parents=True, exist_ok=True)
  vocabulary = {piece: number for number, piece in enumerate(pieces())}
  (folder / "vocab.json").write_text(json.dumps(vocabulary))
  for side in LANGUAGES:
    (folder / f"{side}.spm").write_bytes(sentencepiece_model(side))
  files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
  MarianTokenizer(*files, source_lang="xx", target_lang="yy").save_pretrained(folder)
  last = len(vocabulary) - 1
  settings = {
    **{"vocab_size": len(vocabulary), "d_model": 22, "max_position_embeddings": 128, "scale_embedding": True},
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
    table[[0, -1]] = 0
    table[0, 2], table[0, width // 2 + 2] = 2, -2  # the sine and cosine of one wave
    table[-1].normal_(std=pad)

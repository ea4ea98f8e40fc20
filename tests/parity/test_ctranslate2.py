"""The export to CTranslate2 against the model that it comes from."""

import dataclasses
import json
import logging
import re

import numpy as np
import pytest
import sentencepiece

from tests.parity import exported
from tests.parity.peer import required
from transformer_jax.decoding.translator import Translator
from transformer_jax.interchange import vocabulary
from transformer_jax.interchange.export import export
from transformer_jax.model.config import Activation, Start
from transformer_jax.runtime.errors import InputError

ctranslate2 = required("ctranslate2")

OPTIONS = {
  "the paper's": {},
  "pre-norm": {"pre_norm": True, "attention_bias": True, "activation": Activation.GELU},
  "own tables": {"share_embeddings": False, "share_logits": False, "activation": Activation.GELU_TANH},
  "deep encoder": {"encoder_layers": 3, "decoder_layers": 1},
  "learned positions": {"learned_positions": True, "max_positions": 131, "layer_norm_epsilon": 1e-3},
  "two vocabularies": exported.SEPARATE,
  "bias on the logits": {"logits_bias": True, "share_logits": False},
  "begins with padding": {"start": Start.PAD, "logits_bias": True},
}
# The sums of the library's matmuls are in another order.
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def model():
  config = exported.config()
  return config, exported.params_of(config)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
  return exported.export_of(*model, tmp_path_factory.mktemp("ctranslate2"), "ctranslate2")


def load(folder, compute_type="float32"):
  return ctranslate2.Translator(str(folder), device="cpu", compute_type=compute_type, intra_threads=1)


def scored(translator, *vocab_sizes):
  """The log-probability of each token of each target."""
  sides = exported.tokenizer(*vocab_sizes)
  names = map(vocabulary.pieces, (sides.source, sides.target))
  sources, targets = (
    [[own[token] for token in tokens[:-1]] for tokens in side]
    for own, side in zip(names, exported.pairs(*vocab_sizes), strict=True)
  )
  return [np.array(found.log_probs) for found in translator.score_batch(sources, targets)]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_log_probabilities(tmp_path, options):
  config = exported.config(**options)
  params = exported.params_of(config)
  folder = exported.export_of(config, params, tmp_path, "ctranslate2")
  sizes = config.model.vocab_sizes
  sources, targets = exported.pairs(*sizes)
  expected = exported.log_probs(exported.our_logits(config, params, sources, targets), targets)
  for ours, theirs in zip(expected, scored(load(folder), *sizes), strict=True):
    np.testing.assert_allclose(theirs, ours, rtol=TOLERANCE, atol=TOLERANCE)


def test_the_vocabulary_gives_the_same_pieces(folder):
  names = json.loads((folder / "shared_vocabulary.json").read_text())
  assert names == vocabulary.pieces(exported.tokenizer()) and len(names) == exported.VOCAB
  pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
  texts = [*exported.lines(), "", " ", "a\t\u3000b", "\U0001f600 ﬁ", "</s> <unk>"]
  for text, numbers in zip(texts, exported.tokenizer().encode_batch(texts), strict=True):
    found = pieces.encode(text, out_type=str)
    assert found == [names[number] for number in numbers]
    assert pieces.decode(found) == text


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_and_scores(model, folder, beam):
  """Each sentence by itself, as the library's limit is one number for all."""
  lines = exported.lines()
  ours = Translator(*model, exported.tokenizer()).translate(lines, beam_size=beam, return_scores=True)
  pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
  theirs, compared = load(folder), 0
  for line, translation in zip(lines, ours, strict=True):
    source = pieces.encode(line, out_type=str)
    [found] = theirs.translate_batch(
      [source],
      beam_size=beam,
      patience=1,
      length_penalty=0.7,
      min_decoding_length=0,
      max_decoding_length=len(source) + 1 + exported.EXTRA,
      return_scores=True,
    )
    if translation.tokens < len(source) + 1 + exported.EXTRA:  # else the library ends without EOS
      assert pieces.decode(found.hypotheses[0]) == translation.text
      assert found.scores[0] == pytest.approx(translation.score, abs=1e-4)
      compared += len(translation.text) > 0
  assert compared > 5


def test_the_page_reads_a_line_of_more_than_1024_tokens(model, tmp_path):
  """The library alone would translate its first 1,024 tokens."""
  config, params = model
  decode = dataclasses.replace(config.decode, max_source_length=2003, extra_length=1)
  folder = exported.export_of(dataclasses.replace(config, decode=decode), params, tmp_path, "ctranslate2")
  page = (folder / "README.md").read_text()
  assert "splits a line of more than 2003 tokens" in page
  [limit] = re.findall(r"max_input_length=(\d+)", page)
  source = exported.tokenizer().pieces(exported.tokenizer().encode(" ".join(exported.lines() * 30)))[:1511]
  theirs, options = load(folder), {"max_decoding_length": 11, "return_scores": True}
  found, cut = (
    theirs.translate_batch([part], max_input_length=int(limit), **options)[0] for part in (source, source[:1024])
  )
  assert len(source) == 1511 and found.scores[0] != pytest.approx(cut.scores[0], abs=1e-3)


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_with_a_forced_beginning(model, folder, beam):
  """Without a length penalty, as the two may count the tokens of the beginning otherwise."""
  lines, prefixes = exported.lines(), ["ab", "abc de", "h g", "f"]
  prefixes = [prefixes[i % 4] for i in range(len(lines))]
  translator = Translator(*model, exported.tokenizer())
  ours = translator.translate(lines, prefixes=prefixes, beam_size=beam, length_penalty=0, return_scores=True)
  pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
  theirs, compared = load(folder), 0
  for line, prefix, translation in zip(lines, prefixes, ours, strict=True):
    source = pieces.encode(line, out_type=str)
    [found] = theirs.translate_batch(
      [source],
      target_prefix=[pieces.encode(prefix, out_type=str)],
      beam_size=beam,
      patience=1,
      length_penalty=0,
      min_decoding_length=0,
      max_decoding_length=len(source) + 1 + exported.EXTRA,
    )
    if translation.tokens < len(source) + 1 + exported.EXTRA:  # else the library ends without EOS
      assert pieces.decode(found.hypotheses[0]) == translation.text
      compared += translation.text != prefix
  assert compared > 5


@pytest.mark.parametrize("quantization", ["int8", "int8_float32", "float16", "bfloat16"])
def test_quantization(model, folder, tmp_path, quantization):
  logging.getLogger("ctranslate2").setLevel(logging.ERROR)
  config, params = model
  quantized = exported.export_of(config, params, tmp_path, "ctranslate2", quantization=quantization)
  smaller = (quantized / "model.bin").stat().st_size / (folder / "model.bin").stat().st_size
  found, exact = (np.concatenate(scored(load(path))) for path in (quantized, folder))
  assert 0 < np.max(np.abs(found - exact)) < 0.5
  # The positions, a large part of so small a model, are not quantized to int8.
  assert 0.45 < smaller < (0.55 if quantization.endswith("float16") else 0.75)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"attention_window": 3}, "config.model.attention_window is 3, but the format ctranslate2 has only None"),
    ({"d_k": 5}, "config.model.d_k is 5, but in the format ctranslate2 it is d_model / num_heads = 11"),
    ({"d_v": 13}, "config.model.d_v is 13"),
  ],
)
def test_what_it_cannot_express_is_refused(tmp_path, options, message):
  config = exported.config(**options)
  with pytest.raises(InputError, match=message):
    exported.export_of(config, exported.params_of(config), tmp_path, "ctranslate2")
  assert not (tmp_path / "model").exists()


def test_the_page_has_what_the_run_comes_from(folder):
  page = (folder / "README.md").read_text()
  assert page.startswith('---\nlanguage: ["en", "de"]\nlibrary_name: "ctranslate2"\n')
  assert "beam_size=3, patience=1," in page and '"data": "a text"' in page and '"d_model": 22' in page
  assert str(folder.parent) not in page and "patience of 0" not in page


def test_the_page_says_that_the_library_has_no_patience_of_0(model, tmp_path):
  config, params = model
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, patience=0.0))
  page = (exported.export_of(config, params, tmp_path, "ctranslate2") / "README.md").read_text()
  assert "beam_size=3, patience=1," in page
  assert "\n\nThe run's own search goes on until no hypothesis can become better (a patience of 0). With " in page


def test_the_same_run_gives_the_same_model(model, folder, tmp_path):
  again = tmp_path / "again"
  export(folder.parent / "run", again, "ctranslate2")
  for path in folder.iterdir():
    assert (again / path.name).read_bytes() == path.read_bytes()

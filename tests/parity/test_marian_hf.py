"""The export to Hugging Face transformers' MarianMT against the model that it comes from."""

import json

import numpy as np
import pytest

from tests.parity import exported
from tests.parity.peer import required
from transformer_jax.decoding.translator import Translator
from transformer_jax.model.config import Activation, Start
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime.errors import InputError

torch = required("torch")
torch.set_num_threads(1)  # more only wait for each other
transformers = required("transformers")

# The library's LayerNorm has an epsilon of 1e-5.
EPSILON = {"layer_norm_epsilon": 1e-5}
OPTIONS = {
  "the paper's": EPSILON,
  "other options": {**EPSILON, "attention_bias": True, "activation": Activation.GELU, "share_embeddings": False},
  "deep encoder": {**EPSILON, "encoder_layers": 3, "decoder_layers": 1},
  "tanh": {**EPSILON, "activation": Activation.GELU_TANH},
  "two vocabularies": {**EPSILON, **exported.SEPARATE},
  "begins with padding": {**EPSILON, "start": Start.PAD, "logits_bias": True},
}


@pytest.fixture(scope="module", params=[{}, exported.SEPARATE], ids=["one vocabulary", "two"])
def model(request):
  config = exported.config(**EPSILON, **request.param)
  return config, exported.params_of(config)


@pytest.fixture(scope="module")
def pieces(model):
  return exported.tokenizer(*model[0].model.vocab_sizes)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
  return exported.export_of(*model, tmp_path_factory.mktemp("marian"), "marian-hf")


def load(folder):
  found, report = transformers.MarianMTModel.from_pretrained(folder, output_loading_info=True)
  assert not any(report.values()), report
  return found.eval()


def their_logits(theirs, sources, targets, start):
  """Their logits of each pair, `[target, vocab]`."""
  rows = [torch.tensor(exported.padded(side)) for side in (sources, [[start, *target[:-1]] for target in targets])]
  with torch.inference_mode():
    logits = theirs(input_ids=rows[0], attention_mask=(rows[0] != PAD).long(), decoder_input_ids=rows[1]).logits
  return [found[: len(target)].numpy() for found, target in zip(logits, targets, strict=True)]


def assert_equal_logits(theirs, config, params, tolerance=1e-5):
  sources, targets = exported.pairs(*config.model.vocab_sizes)
  ours = exported.our_logits(config, params, sources, targets)
  for expected, found in zip(ours, their_logits(theirs, sources, targets, config.model.start_token), strict=True):
    np.testing.assert_allclose(found, expected, atol=tolerance * np.max(np.abs(expected)), rtol=tolerance)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_logits(tmp_path, options):
  config = exported.config(**options)
  params = exported.params_of(config)
  assert_equal_logits(load(exported.export_of(config, params, tmp_path, "marian-hf")), config, params)


def test_logits_with_the_usual_epsilon(tmp_path):
  config = exported.config()
  params = exported.params_of(config)
  assert_equal_logits(load(exported.export_of(config, params, tmp_path, "marian-hf")), config, params, 2e-5)


def test_logits_after_the_library_has_saved_it_again(model, folder, tmp_path):
  load(folder).save_pretrained(tmp_path)
  assert_equal_logits(load(tmp_path), *model)


@pytest.mark.parametrize("beam", [1, 3])
def test_translations(model, pieces, folder, beam):
  """Each sentence by itself, as the library's limit is one number for all. At the limit its scores lack EOS."""
  lines = exported.lines()
  ours = Translator(*model, pieces).translate(lines, beam_size=beam, return_scores=True)
  tokenizer, theirs, compared = transformers.MarianTokenizer.from_pretrained(folder), load(folder), 0
  options = {"length_penalty": None, "early_stopping": None} if beam == 1 else {"return_dict_in_generate": True}
  for line, translation in zip(lines, ours, strict=True):
    source = tokenizer([line], return_tensors="pt")
    length = source["input_ids"].shape[1] + exported.EXTRA
    found = theirs.generate(**source, num_beams=beam, max_length=length + 1, output_scores=beam > 1, **options)
    if translation.tokens < length:
      [tokens] = (found.sequences if beam > 1 else found).tolist()
      assert pieces.decode(tokens) == translation.text
      assert beam == 1 or found.sequences_scores.item() == pytest.approx(translation.score, abs=1e-5)
      compared += len(translation.text) > 0
  assert compared > 5


def test_the_tokenizer_gives_the_same_tokens(pieces, folder):
  tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
  texts = [*exported.lines(), "a\t\u3000b", "\U0001f600 ﬁ", "a </s> <pad> b", "<unk>a</s>", "a . b , c n't"]
  sides = pieces.source.encode_batch(texts), pieces.target.encode_batch(texts)
  for text, source, target in zip(texts, *sides, strict=True):
    assert tokenizer(text)["input_ids"] == [*source, 3]
    assert tokenizer(text_target=text)["input_ids"] == [*target, 3]
    assert tokenizer.decode(target) == text.strip()
  assert len(tokenizer) == pieces.vocab_sizes[0]


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"pre_norm": True}, "config.model.pre_norm is True, but the format marian-hf has only False"),
    ({"learned_positions": True}, "config.model.learned_positions is True"),
    ({"attention_window": 3}, "config.model.attention_window is 3, but the format marian-hf has only None"),
    ({"share_logits": False}, "config.model.share_logits is False, but the format marian-hf has only True"),
    ({"layer_norm_epsilon": 1e-3}, "config.model.layer_norm_epsilon is 0.001, but the format marian-hf has only 1e-05"),
    ({"d_k": 5}, "config.model.d_k is 5, but in the format marian-hf it is d_model / num_heads = 11"),
  ],
)
def test_what_it_cannot_express_is_refused(tmp_path, options, message):
  config = exported.config(**options)
  with pytest.raises(InputError, match=message):
    exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")


def test_the_files(pieces, folder):
  own = {"target_vocab.json"} if len(pieces.vocab_sizes) > 1 else set()
  assert {path.name for path in folder.iterdir()} == {
    *("model.safetensors", "config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"),
    *("source.spm", "target.spm", "README.md"),
    *own,
  }
  page = (folder / "README.md").read_text()
  assert page.startswith('---\nlanguage: ["en", "de"]\n') and '"data": "a text"' in page
  settings = json.loads((folder / "generation_config.json").read_text())
  assert (settings["num_beams"], settings["length_penalty"], settings["early_stopping"]) == (3, 0.7, True)

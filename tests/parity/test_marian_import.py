"""The import of Hugging Face transformers' MarianMT against the model that transformers load."""

import json
import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy

from tests.parity import exported, marian_folder
from tests.parity.peer import required
from transformer_jax import runs
from transformer_jax.data.listed_tokenizer import ListedTokenizer
from transformer_jax.decoding.translator import Translator
from transformer_jax.interchange import hf_folder
from transformer_jax.interchange.export import export
from transformer_jax.interchange.import_ import import_model
from transformer_jax.model.feed_forward import ACTIVATIONS
from transformer_jax.model.special_tokens import BOS, UNK

torch = required("torch")
torch.set_num_threads(1)  # more only wait for each other
transformers = required("transformers")

OPTIONS = {
  "as OPUS-MT": {},
  "separate embeddings": {
    **{"share_encoder_decoder_embeddings": False, "activation_function": "relu"},
    "search": {"num_beams": 4, "length_penalty": 0.8, "early_stopping": "never"},
  },
  "two vocabularies": {"share_encoder_decoder_embeddings": False, "separate": True},
  "begins with another piece": {
    **{"decoder_start_token_id": 7, "activation_function": "gelu", "decoder_layers": 1},
    "search": {"num_beams": 4, "length_penalty": 0.8, "early_stopping": True, "renormalize_logits": True},
    **{f"{stack}_attention_heads": 1 for stack in ("encoder", "decoder")},
  },
  "other sizes": {
    **{"d_model": 34, "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 23, "decoder_ffn_dim": 23},
    **{"activation_function": "gelu_pytorch_tanh", "dropout": 0.3, "attention_dropout": 0.2, "init_std": 0.25},
  },
}
SAME = (  # of the config of their model, after our export
  *("vocab_size", "decoder_vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id"),
  *("d_model", "encoder_ffn_dim", "encoder_layers", "decoder_layers", "decoder_attention_heads"),
  *("activation_function", "dropout", "attention_dropout"),
)
TEXTS = [*marian_folder.lines("source")[:12], ">>xx<< fe gh", "zzz \u00e4 fe  gh ", "\ufb01 x\tfe", ">>no<<fe"]


@pytest.fixture(scope="module", params=OPTIONS)
def imported(request, tmp_path_factory):
  """Their model, the folder and the run."""
  folder = tmp_path_factory.mktemp("imported")
  theirs = marian_folder.write(folder / "hf", **OPTIONS[request.param])
  import_model(folder / "hf", folder / "run", "marian-hf")
  return theirs, folder / "hf", folder / "run"


def theirs_of(model, tokens, side="target"):
  """Tokens of ours with their numbers there."""
  order = getattr(model.tokenizer, side).vocabulary.order()
  return [[int(order[token]) for token in row] for row in tokens]


def test_logits(imported):
  theirs, _, run = imported
  model = runs.open(run).model("translate")
  sides = model.tokenizer.source, model.tokenizer.target
  pairs = [
    [[*row, 3] for row in side.encode_batch(marian_folder.lines(name)[:7])]
    for side, name in zip(sides, marian_folder.LANGUAGES, strict=True)
  ]
  target = model.tokenizer.target
  assert isinstance(target, ListedTokenizer)
  start, order = theirs.config.decoder_start_token_id, target.vocabulary.order()
  ours = exported.our_logits(model.config, model.params, *pairs)
  theirs_of_pairs = map(theirs_of, (model, model), pairs, marian_folder.LANGUAGES)
  for source, target, found in zip(*theirs_of_pairs, ours, strict=True):
    with torch.inference_mode():
      inputs = torch.tensor([[start, *target[:-1]]])
      expected = theirs(input_ids=torch.tensor([source]), decoder_input_ids=inputs).logits[0].numpy()
    np.testing.assert_allclose(found, expected[:, order], atol=1e-5 * np.max(np.abs(expected)), rtol=1e-5)


def test_the_tokenizers_are_theirs(imported):
  _, folder, run = imported
  model, theirs = runs.open(run).model(), transformers.MarianTokenizer.from_pretrained(folder)
  numbers = theirs_of(model, model.tokenizer.source.encode_batch(TEXTS), "source")
  for text, tokens in zip(TEXTS, numbers, strict=True):
    assert [*tokens, 0] == theirs(text)["input_ids"]
  texts = marian_folder.lines("target")[:7]
  for text, numbers in zip(texts, model.tokenizer.target.encode_batch(texts), strict=True):
    [tokens] = theirs_of(model, [numbers])
    assert [*tokens, 0] == theirs(text_target=text)["input_ids"]
    known = [number for number in numbers if number not in (UNK, BOS)]  # a piece that begins is never emitted
    assert model.tokenizer.decode(known) == theirs.decode(theirs_of(model, [known])[0])


@pytest.mark.parametrize("beam", [1, 4])
def test_translations(imported, beam):
  """Each sentence by itself, with the limit that it has here. At the limit their scores of a beam lack EOS."""
  theirs, folder, run = imported
  translator = Translator.load(run)
  tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
  found, compared = translator.translate(TEXTS, beam_size=beam, return_scores=True), 0
  options = {"length_penalty": None, "early_stopping": None} if beam == 1 else {"return_dict_in_generate": True}
  for text, translation in zip(TEXTS, found, strict=True):
    source = tokenizer(text, return_tensors="pt")
    limit = source["input_ids"].shape[1] + translator.config.decode.extra_length
    result = theirs.generate(
      **source,
      **{"num_beams": beam, "max_length": limit + 1, "output_scores": beam > 1, **options},
      decoder_start_token_id=theirs.config.decoder_start_token_id,
    )
    if beam == 1 or translation.tokens < limit:
      [tokens] = (result.sequences if beam > 1 else result).tolist()
      assert tokenizer.decode(tokens[1:], skip_special_tokens=True) == translation.text.replace("\ufffd", "").strip()
      assert beam == 1 or result.sequences_scores.item() == pytest.approx(translation.score, abs=1e-5)
      compared += len(translation.text) > 0
  assert compared > 4


def test_the_export_gives_back_the_same_bits(imported, tmp_path):
  theirs, folder, run = imported
  export(run, tmp_path / "hf", "marian-hf")
  before, after = (safetensors.numpy.load_file(path / "model.safetensors") for path in (folder, tmp_path / "hf"))
  assert before.keys() == after.keys()
  for name, array in before.items():
    np.testing.assert_array_equal(array.view(np.int32), after[name].view(np.int32), name)
  for name in ("source.spm", "target.spm"):
    assert (tmp_path / "hf" / name).read_bytes() == (folder / name).read_bytes()
  vocabularies = {path.name for path in folder.glob("*vocab.json")}
  assert {path.name for path in (tmp_path / "hf").glob("*vocab.json")} == vocabularies
  for name in vocabularies:
    assert json.loads((tmp_path / "hf" / name).read_text()) == json.loads((folder / name).read_text())
  loaded, report = transformers.MarianMTModel.from_pretrained(tmp_path / "hf", output_loading_info=True)
  assert not any(report.values())
  for name in SAME:
    assert getattr(loaded.config, name) == getattr(theirs.config, name), name
  ours = runs.open(run).config.model
  assert (ours.dropout, ours.attention_dropout) == (theirs.config.dropout, theirs.config.attention_dropout)
  settings, before = loaded.generation_config, theirs.generation_config
  assert (settings.num_beams, settings.length_penalty) == (before.num_beams, before.length_penalty) == (4, 0.8)
  assert settings.early_stopping == before.early_stopping
  import_model(tmp_path / "hf", tmp_path / "again", "marian-hf")
  again, first = (runs.open(path).model() for path in (tmp_path / "again", run))
  jax.tree.map(np.testing.assert_array_equal, again.params, first.params)
  assert again.tokenizer.fingerprint() == first.tokenizer.fingerprint()
  assert again.config.model == first.config.model


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_of_the_bits(imported, tmp_path, dtype):
  """Numbers of these types are numbers of float32: the run has those that torch makes of them."""
  theirs, folder, _ = imported
  halves = {name: array.to(getattr(torch, dtype)) for name, array in theirs.state_dict().items()}
  wholes = {name: array.float() for name, array in halves.items() if "embed_positions" not in name}
  for name, state in (("half", halves), ("whole", wholes)):
    shutil.copytree(folder, tmp_path / name)
    (tmp_path / name / "model.safetensors").unlink()
    torch.save(state, tmp_path / name / "pytorch_model.bin")
    import_model(tmp_path / name, tmp_path / f"{name} run", "marian-hf")
  found, expected = (runs.open(tmp_path / f"{name} run").model().params for name in ("half", "whole"))
  jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("name", hf_folder._BY_NAME)
def test_activations(name):
  """Each name that is taken, against the function that transformers have by it."""
  x = np.linspace(-5, 5, 211, dtype=np.float32)
  found = ACTIVATIONS[hf_folder._BY_NAME[name]](x)
  expected = transformers.activations.ACT2FN[name](torch.from_numpy(x)).numpy()
  np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("newer", [True, False])
def test_a_file_of_pytorch(imported, tmp_path, newer):
  theirs, folder, run = imported
  shutil.copytree(folder, tmp_path / "hf")
  (tmp_path / "hf" / "model.safetensors").unlink()
  path = tmp_path / "hf" / "pytorch_model.bin"
  torch.save(theirs.state_dict(), path, _use_new_zipfile_serialization=newer)
  import_model(tmp_path / "hf", tmp_path / "run", "marian-hf")
  jax.tree.map(np.testing.assert_array_equal, *(runs.open(each).model().params for each in (tmp_path / "run", run)))

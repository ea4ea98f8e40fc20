"""The import of the format `marian-hf`: what comes back of an exported run, what is refused, and damage."""

import dataclasses
import functools
import json
import math
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from etils import epath

from tests import damage
from tests.parity import exported
from transformer_jax import runs
from transformer_jax.config import Config
from transformer_jax.data import tokenizers
from transformer_jax.interchange import marian_hf, marian_hf_import
from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.interchange.import_ import import_model
from transformer_jax.model.config import Activation, ModelConfig
from transformer_jax.model.params import by_name
from transformer_jax.runs import averaging, init_from, params_file
from transformer_jax.runtime import tensor_file
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.initialization import shapes_of


@pytest.fixture(scope="module")
def original(tmp_path_factory):
  """A run as `marian-hf`."""
  config = exported.config(layer_norm_epsilon=1e-5)
  return exported.export_of(config, exported.params_of(config), tmp_path_factory.mktemp("marian"), "marian-hf")


@pytest.fixture
def folder(original, tmp_path):
  """A copy to change."""
  return shutil.copytree(original, tmp_path / "hf")


def edit(path, **values):
  path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_an_exported_run_comes_back(original, tmp_path):
  import_model(original, tmp_path / "run", "marian-hf")
  before, after = (runs.open(path).model("translate") for path in (original.parent / "run", tmp_path / "run"))
  arrays = by_name(jax.device_get(after.params))
  for name, array in by_name(jax.device_get(before.params)).items():
    np.testing.assert_array_equal(arrays.pop(name), array, name)
  assert all(name.endswith("bias") and not np.any(array) for name, array in arrays.items())
  for name in ("beam_size", "length_penalty", "penalty", "patience", "renormalize"):
    assert getattr(after.config.decode, name) == getattr(before.config.decode, name)
  assert (after.config.decode.max_source_length, after.config.decode.extra_length) == (256, 255)  # 512 in all
  assert after.config.data.source_language == "en" and after.step == 0
  texts = exported.lines()
  assert after.tokenizer.source.encode_batch(texts) == before.tokenizer.encode_batch(texts)
  assert after.tokenizer.decode(before.tokenizer.encode("dabc  x")) == "dabc  x"
  every = range(exported.VOCAB)  # bytes that are characters among them
  assert after.tokenizer.pieces(every) == before.tokenizer.pieces(every)
  again = tokenizers.from_bytes(tokenizers.to_bytes(after.tokenizer))
  assert again.fingerprint() == after.tokenizer.fingerprint()
  with pytest.raises(InputError, match=r"has its parameters in one file, model\.safetensors, and no checkpoints"):
    averaging.average(tmp_path / "run", tmp_path / "mean", last=1)
  [origin] = [entry["imported"] for entry in runs.open(tmp_path / "run").provenance]
  assert origin["from"] == "marian-hf" and {"config.json", "model.safetensors"} <= origin["sha256"].keys()


def test_fine_tuning_takes_its_sizes_and_its_vocabulary(original, tmp_path, capsys):
  import_model(original, tmp_path / "run", "marian-hf")
  run = runs.open(tmp_path / "run")
  config = init_from.config_from(run.config, exported.config())
  assert isinstance(config.model, ModelConfig) and config.model.logits_bias and config.model.attention_bias
  assert init_from.tokenizer_to_begin_with(config, run).fingerprint() == run.tokenizer.fingerprint()


def refused(folder, message):
  with pytest.raises(InputError, match=message) as caught:
    import_model(folder, folder.parent / "new", "marian-hf")
  assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
  assert {path.name for path in folder.parent.iterdir()} == {folder.name}


@pytest.mark.parametrize(
  ("name", "value", "message"),
  [
    ("model_type", "bart", "model_type is 'bart', but must be 'marian'"),
    ("scale_embedding", False, "scale_embedding is False, but must be True"),
    ("normalize_before", True, "normalize_before is True, but must be False: the model here has nothing else"),
    ("static_position_embeddings", False, "static_position_embeddings is False, but must be True"),
    ("tie_word_embeddings", False, "tie_word_embeddings is False"),
    ("decoder_ffn_dim", 31, "decoder_ffn_dim is 31, but must be 29"),
    ("decoder_attention_heads", 11, "decoder_attention_heads is 11, but must be 2: encoder and decoder have the same"),
    ("activation_function", "tanh", "activation_function is 'tanh', but must be one of relu, "),
    ("vocab_size", 284, "vocab_size is 284, but must be 283, the tokens in vocab.json"),
    ("decoder_vocab_size", 284, "decoder_vocab_size is 284, but must be 283, the tokens in vocab.json"),
    ("d_model", 23, "d_model is 23, but must be even"),
    ("d_model", 1 << 24, r"has shape .*, but in a model of these sizes \(.*16777216"),
    ("d_model", (1 << 31) - 2, "d_model is 2147483646, but must be at most 16,777,216"),
    ("d_model", 1 << 31, "d_model is 2147483648, but must be a whole number from 2 to 2147483647"),
    ("d_model", "22", "d_model is '22', but must be a whole number"),
    ("dropout", 1.0, "dropout is 1.0, but must be at least 0 and below 1"),
    ("decoder_start_token_id", 3, "are not different tokens of vocab.json"),
    ("pad_token_id", 1 << 20, "pad_token_id is 1048576, but must be a whole number from 0 to 282"),
  ],
)
def test_a_model_that_we_cannot_express(folder, name, value, message):
  edit(folder / "config.json", **{name: value})
  if name == "decoder_start_token_id":
    edit(folder / "generation_config.json", **{name: value})
  refused(folder, message)


# The options of which the model has one value.
ONLY = {
  "normalize_before": False,
  "normalize_embedding": False,
  "add_final_layer_norm": False,
  "static_position_embeddings": True,
  "is_encoder_decoder": True,
  "tie_word_embeddings": True,
}
# The settings of which the search has one value, and the ways to write it; without any the setting is left out.
SEARCH = {
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
  "forced_bos_token_id": (),
  "begin_suppress_tokens": (),
  "sequence_bias": (),
  "exponential_decay_length_penalty": (),
  "max_new_tokens": (),
  "max_time": (),
  "force_words_ids": (),
  "stop_strings": (),
  "penalty_alpha": (),
}


def test_every_setting_of_one_value_has_a_test():
  assert ONLY.keys() == marian_hf_import._ONLY.keys()
  assert SEARCH.keys() == {*marian_hf_import._SEARCH_ONLY, *marian_hf_import._NEVER}


@pytest.mark.parametrize(("name", "only"), ONLY.items())
def test_each_option_of_which_the_model_has_one_value(folder, name, only):
  edit(folder / "config.json", **{name: not only})
  refused(folder, f"config.json: {name} is {not only}, but must be {only}: the model here has nothing else")


def with_search_in_config_json(folder):
  edit(folder / "config.json", **json.loads((folder / "generation_config.json").read_text()))
  (folder / "generation_config.json").unlink()


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("name", SEARCH)
def test_each_setting_of_which_the_search_has_one_value(folder, file, name):
  """In the file of newer folders, and in that of older ones."""
  only = SEARCH[name]
  value = True if only == (False,) else 7
  if file == "config.json":
    before = marian_hf_import.described(ForeignFolder(folder))
    edit(folder / file, **{name: value})
    assert marian_hf_import.described(ForeignFolder(folder)) == before  # which transformers does not read
    with_search_in_config_json(folder)
  edit(folder / file, **{name: value})
  must = " or ".join(map(repr, only)) or "left out"
  refused(folder, f"{file}: {name} is {value}, but must be {must}: the search here has nothing else")


def test_the_values_that_are_known_change_nothing(folder):
  """Of every setting of which there is one value, and null."""
  config, *_ = marian_hf_import.described(ForeignFolder(folder))
  for file, table in (
    ("config.json", {name: (only,) for name, only in ONLY.items()}),
    ("generation_config.json", SEARCH),
  ):
    before = (folder / file).read_text()
    for place in range(3):
      edit(folder / file, **{name: (*only, None, None, None)[place] for name, only in table.items()})
      assert marian_hf_import.described(ForeignFolder(folder))[0] == config
    (folder / file).write_text(before)


def test_an_older_folder_has_its_search_in_config_json(folder):
  config, pieces, notes = marian_hf_import.described(ForeignFolder(folder))
  assert config.decode.beam_size == 3 and config.decode.length_penalty == 0.7
  with_search_in_config_json(folder)
  assert marian_hf_import.described(ForeignFolder(folder)) == (config, pieces, notes)


def test_special_tokens_as_objects(folder):
  described = marian_hf_import.described(ForeignFolder(folder))
  for name in ("unk_token", "eos_token"):
    text = json.loads((folder / "tokenizer_config.json").read_text())[name]
    edit(folder / "tokenizer_config.json", **{name: {"content": text, "lstrip": False, "special": True}})
  assert marian_hf_import.described(ForeignFolder(folder)) == described
  edit(folder / "tokenizer_config.json", eos_token={"content": "<unk>"})
  refused(folder, "eos_token is a dict, but must be '</s>'")


@pytest.fixture
def two(tmp_path):
  """A folder with two vocabularies, to change."""
  config = exported.config(layer_norm_epsilon=1e-5, **exported.SEPARATE)
  return exported.export_of(config, exported.params_of(config), tmp_path / "run", "marian-hf").rename(tmp_path / "hf")


def test_two_vocabularies_come_back_and_what_does_not_fit_is_refused(two, tmp_path):
  original = runs.open(tmp_path / "run" / "run").model()
  import_model(two, tmp_path / "run" / "new", "marian-hf")
  found = runs.open(tmp_path / "run" / "new").model()
  assert found.tokenizer.vocab_sizes == original.tokenizer.vocab_sizes == (277, 283)
  texts, arrays = exported.lines(), by_name(jax.device_get(found.params))
  for name in ("own_source_embedding/table", "target_embedding/table"):
    np.testing.assert_array_equal(arrays[name], by_name(jax.device_get(original.params))[name])
  for side in ("source", "target"):
    sides = (getattr(model.tokenizer, side) for model in (found, original))
    assert len({json.dumps(each.encode_batch(texts)) for each in sides}) == 1
  again = tokenizers.from_bytes(tokenizers.to_bytes(found.tokenizer))
  assert again.fingerprint() == found.tokenizer.fingerprint() and again.vocab_sizes == (277, 283)
  shutil.rmtree(tmp_path / "run")
  path = two / "config.json"
  for name, value, message in (
    ("share_encoder_decoder_embeddings", True, "must be False, as separate_vocabs is True in tokenizer_config.json"),
    ("decoder_vocab_size", 277, "decoder_vocab_size is 277, but must be 283, the tokens in target_vocab.json"),
    ("vocab_size", 283, "vocab_size is 283, but must be 277, the tokens in vocab.json"),
  ):
    before = path.read_text()
    edit(path, **{name: value})
    refused(two, message)
    path.write_text(before)
  names = json.loads((two / "vocab.json").read_text())
  (two / "vocab.json").write_text(json.dumps({piece.replace("<pad>", "<p>"): names[piece] for piece in names}))
  refused(two, "vocab.json has no '<pad>', which target_vocab.json has")
  (two / "target_vocab.json").unlink()
  refused(two, "has no target_vocab.json, which the format needs")


@pytest.mark.parametrize(
  ("dtype", "error", "fits"),
  [
    *[(np.float32, 0, True), (np.float16, 0, True), (jnp.bfloat16, 0, True)],
    *[(np.float32, 1e-6, False), (np.float16, 2e-3, False), (jnp.bfloat16, 2e-2, False)],
  ],
)
def test_a_table_of_positions_must_be_that_of_the_formula(tmp_path, dtype, error, fits):
  """But for the rounding of its type. The error is at position 1, as an angle of float32 is less exact later."""
  positions, width = 131, 22
  table = [
    [(math.sin if k < width // 2 else math.cos)(p / 10_000 ** (2 * (k % (width // 2)) / width)) for k in range(width)]
    for p in range(positions)
  ]
  changed = np.array(table)
  changed[1, 3] += error
  tensor_file.write(tmp_path / "model.safetensors", {"positions": changed.astype(dtype)}, {})
  with ForeignFolder(tmp_path).weights() as weights:
    if fits:
      marian_hf_import._require_sinusoids(weights, "positions", width)
    else:
      with pytest.raises(InputError, match="positions holds learned positions"):
        marian_hf_import._require_sinusoids(weights, "positions", width)


def test_more_layers_than_arrays(folder):
  edit(folder / "config.json", encoder_layers=1000, decoder_layers=1000)
  refused(folder, "has fewer arrays than the model has layers")


@pytest.mark.parametrize(
  ("name", "value", "message"),
  [
    ("num_beams", 0, "num_beams is 0, but must be a whole number from 1 to 1024"),
    ("length_penalty", -1.0, "length_penalty is -1.0, but must be from 0 to 5"),
    ("repetition_penalty", 1.2, "repetition_penalty is 1.2, but must be 1 or 1.0: the search here has nothing else"),
    ("forced_bos_token_id", 7, "forced_bos_token_id is 7, but must be left out"),
    ("suppress_tokens", [0, 2, 9], r"suppress_tokens is a list, but must be of \[0, 2\]"),
    (
      "suppress_tokens",
      [0],
      "bad_words_ids is missing, but must be a list with decoder_start_token_id, which is never",
    ),
    ("bad_words_ids", 5, r"bad_words_ids is 5, but must be of \[0, 2\]"),
    ("do_sample", True, "do_sample is True, but must be False"),
    ("eos_token_id", 9, r"eos_token_id is 9, but must be \d or \[\d\]: the search here ends with EOS, as config.json"),
    ("eos_token_id", [3, 9], r"eos_token_id is a list, but must be \d or \[\d\]"),
    ("pad_token_id", 9, r"pad_token_id is 9, but must be \d: config.json has that"),
  ],
)
def test_a_search_that_we_do_not_have(folder, name, value, message):
  edit(folder / "generation_config.json", **{name: value})
  refused(folder, message)


def test_a_vocabulary_with_a_gap(folder):
  pieces = json.loads((folder / "vocab.json").read_text())
  (folder / "vocab.json").write_text(json.dumps(pieces | {"<pad>": 283}))
  refused(folder, "does not number its tokens 0, 1, 2 and so on")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "model.safetensors"])
def test_files_that_are_missing_or_links(folder, tmp_path_factory, name):
  outside = tmp_path_factory.mktemp("outside") / name
  shutil.move(folder / name, outside)
  weights = name == "model.safetensors"
  refused(folder, "has neither model.safetensors nor pytorch_model.bin" if weights else f"has no {name}")
  (folder / name).symlink_to(outside)
  refused(folder, f"{name} is a link that leads out of the folder: put a copy in its place")


def test_a_search_that_ends_by_a_rule_of_its_own_is_told(folder, tmp_path, capsys):
  edit(folder / "generation_config.json", early_stopping=False, renormalize_logits=True)
  import_model(folder, tmp_path / "run", "marian-hf")
  assert "early_stopping is false, which is not known here" in capsys.readouterr().err
  assert runs.open(tmp_path / "run").config.decode.renormalize


def test_a_damaged_list_of_pieces_in_a_run(original, tmp_path):
  import_model(original, tmp_path / "run", "marian-hf")
  values = json.loads((tmp_path / "run" / "pieces.json").read_text())
  for change, message in (
    ({"pieces": []}, "is no list of pieces"),
    ({"pieces": [*values["pieces"], "</s>"]}, "has a piece twice"),
    ({"pad": "none such"}, "does not tell which pieces are"),
    ({"eos": values["pad"]}, "does not tell which pieces are"),
  ):
    (tmp_path / "run" / "pieces.json").write_text(json.dumps(values | change))
    with pytest.raises(InputError, match=message):
      _ = runs.open(tmp_path / "run", accept_edits=True).tokenizer


# A stranger's folder


@pytest.mark.long
@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "vocab.json"])
@damage.COUNTS
def test_damaged_settings(folder, record_property, name, count):
  def attempt():
    marian_hf_import.described(ForeignFolder(folder))

  refused = damage.read_damaged([folder / name], count, attempt, record_property)
  assert 10 < refused < count - 10


@pytest.mark.long
@damage.COUNTS
def test_damaged_arrays(folder, record_property, count):
  with ForeignFolder(folder).weights() as weights:
    shapes = dict(weights.shapes)

  def attempt():
    with ForeignFolder(folder).weights() as found:
      found.require(shapes)
      for name in shapes:
        assert found.array(name).dtype == np.float32

  refused = damage.read_damaged([folder / params_file.FILE], count, attempt, record_property)
  assert 10 < refused < count - 10
  assert ForeignFolder(epath.Path(folder)).has(params_file.FILE)


@functools.cache
def cached_shapes_of_model(model):
  return shapes_of(Config(model=model))


def cached_shapes(config):
  return cached_shapes_of_model(config.model)


@pytest.mark.long
@pytest.mark.parametrize("name", ["folder", "two"])
@damage.COUNTS
def test_a_damaged_folder_is_read_or_refused(request, monkeypatch, record_property, name, count):
  """The whole of it, with one vocabulary and with two: `count` damages in all."""
  monkeypatch.setattr(marian_hf_import, "shapes_of", cached_shapes)  # tracing is slow, and most have the same config
  folder = request.getfixturevalue(name)

  def attempt():
    found = marian_hf_import.read(ForeignFolder(folder))
    assert {name: array.shape for name, array in found.arrays.items()} == cached_shapes(found.config)
    assert found.tokenizer.vocab_sizes == found.config.model.vocab_sizes
    tokens = found.tokenizer.source.encode_batch(["ab \ufb01 \uac00\n", ""])
    assert all(0 <= token < found.config.model.vocab_sizes[0] for row in tokens for token in row)
    found.tokenizer.decode(range(found.config.model.vocab_size))

  attempt()
  files = [path for path in sorted(folder.iterdir()) if path.name != "README.md"]
  assert {path.name for path in files} >= {*marian_hf.SENTENCEPIECE, "tokenizer_config.json", "vocab.json"}
  refused = damage.read_damaged(files, count // 2, attempt, record_property)
  assert count // 6 < refused < count // 2


def test_a_run_of_longer_texts_has_positions_for_them(tmp_path):
  """For the first token, the longest source and what an output may have more."""
  config = exported.config(layer_norm_epsilon=1e-5)
  config = dataclasses.replace(
    config, decode=dataclasses.replace(config.decode, max_source_length=600, extra_length=37)
  )
  folder = exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  model, search = (json.loads((folder / f"{name}.json").read_text()) for name in ("config", "generation_config"))
  assert model["max_position_embeddings"] == search["max_length"] == 638
  import_model(folder, tmp_path / "again", "marian-hf")
  decode = runs.open(tmp_path / "again").config.decode
  assert decode.max_source_length + decode.extra_length == 637


@pytest.mark.parametrize(
  ("name", "key", "value"),
  [("length_penalty", "length_penalty", 1.0), ("num_beams", "beam_size", 1), ("early_stopping", "patience", 1.0)],
)
def test_a_setting_that_is_left_out_has_the_value_of_the_library(folder, name, key, value):
  path = folder / "generation_config.json"
  settings = json.loads(path.read_text())
  del settings[name]
  path.write_text(json.dumps(settings))
  config, *_ = marian_hf_import.described(ForeignFolder(folder))
  assert getattr(config.decode, key) == value


@pytest.mark.long
@pytest.mark.parametrize("options", [{"renormalize": True}, {"patience": 0.0}])
def test_the_options_of_a_search_come_back(tmp_path, options):
  config = exported.config(layer_norm_epsilon=1e-5)
  config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, **options))
  folder = exported.export_of(config, exported.params_of(config), tmp_path, "marian-hf")
  settings = json.loads((folder / "generation_config.json").read_text())
  assert settings.get("renormalize_logits", False) == config.decode.renormalize
  import_model(folder, tmp_path / "again", "marian-hf")
  decode = runs.open(tmp_path / "again").config.decode
  assert {name: getattr(decode, name) for name in options} == options


def test_an_activation_that_is_left_out_is_the_librarys(folder):
  values = json.loads((folder / "config.json").read_text())
  del values["activation_function"]
  (folder / "config.json").write_text(json.dumps(values))
  assert marian_hf_import.described(ForeignFolder(folder))[0].model.activation is Activation.GELU


def test_the_files_forbid_pad_and_bos_end_at_the_limit_and_keep_spaces(original):
  search, texts = (json.loads((original / f"{name}_config.json").read_text()) for name in ("generation", "tokenizer"))
  assert (search["suppress_tokens"], search["forced_eos_token_id"]) == ([0, 2], 3)
  assert texts["clean_up_tokenization_spaces"] is False and texts["model_max_length"] == 61


@pytest.mark.parametrize(("limit", "extra"), [(2000, 1024), (None, 255)])
def test_the_room_of_an_output(folder, limit, extra):
  """It has a most; without `max_length` it is that of the positions, which are 512."""
  edit(folder / "generation_config.json", max_length=limit)
  decode = marian_hf_import.described(ForeignFolder(folder))[0].decode
  assert (decode.max_source_length, decode.extra_length) == (256, extra)


def test_nothing_is_told_of_the_end_of_a_greedy_search(folder):
  edit(folder / "generation_config.json", num_beams=1, early_stopping=False)
  assert marian_hf_import.described(ForeignFolder(folder))[2] == ()


def test_learned_positions_in_the_file_are_refused(folder):
  """Whatever config.json says."""
  name, path = "model.encoder.embed_positions.weight", folder / params_file.FILE
  arrays = safetensors.numpy.load_file(path)
  safetensors.numpy.save_file({**arrays, name: np.ones((512, 22), np.float32)}, path)
  refused(folder, f"{name} holds learned positions, but the model here has sinusoids")


@pytest.mark.parametrize("changes", [{"target_lang": "en"}, {"source_lang": None}, {"source_lang": 7}])
def test_a_folder_that_does_not_name_two_languages(folder, changes):
  edit(folder / "tokenizer_config.json", **changes)
  data = marian_hf_import.described(ForeignFolder(folder))[0].data
  assert (data.source_language, data.target_language) == ("source", "target")

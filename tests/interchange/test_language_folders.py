"""Folders of BERT and GPT-2 without the library that writes them: exported, imported again, and damaged."""

import dataclasses
import functools
import hashlib
import json
import re
import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy
from etils import epath

from tests import damage
from tests.data.test_subwords import byte_pairs, words
from tests.model.example import random_params
from transformer_jax import runs
from transformer_jax.config import Config, Corpus, DataConfig, EvaluateConfig, TrainConfig
from transformer_jax.data import blocks, tokenizers
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer import LONGEST_PIECE
from transformer_jax.interchange import bert, gpt2, hf_folder, hf_tokenizer, hf_vocabulary, vocabulary
from transformer_jax.interchange.export import export
from transformer_jax.interchange.foreign_folder import ForeignFolder
from transformer_jax.interchange.import_ import import_model
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, ELMoConfig, GPTConfig
from transformer_jax.model.config import Activation, Dtype, ModelConfig
from transformer_jax.model.params import by_name
from transformer_jax.runs import init_from, params_file, run_folder
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import loop
from transformer_jax.training.initialization import shapes_of
from transformer_jax.training.task import task_of

pytest.importorskip("tokenizers", reason="tokenizers is missing: pip install -e '.[huggingface]'")

SIZES = {"num_layers": 1, "d_model": 6, "d_ff": 7, "num_heads": 3, "max_positions": 11, "activation": Activation.SWISH}


@functools.cache
def sentencepiece():
  return SentencePieceTokenizer.learn(["ab abc", "bcab c"], 270)


def model_of(name):
  """A config and a tokenizer."""
  match name:
    case "bert":
      return BERTConfig(vocab_size=11, **SIZES), words()
    case "gpt2":
      return GPTConfig(vocab_size=260, pre_norm=True, begin=0, end=0, **SIZES), byte_pairs()
    case "bert of ours":
      return BERTConfig(vocab_size=270, **SIZES), sentencepiece()
    case "classes of ours":
      return BERTClassifierConfig(vocab_size=270, labels="en,한국어", **SIZES), sentencepiece()
  return GPTConfig(vocab_size=270, pre_norm=True, **SIZES), sentencepiece()


NAMES = ["bert", "gpt2", "bert of ours", "classes of ours", "gpt2 of ours"]


def run_of(name, folder, row_length=11):
  """The run folder of a model with random parameters."""
  model, tokenizer = model_of(name)
  config = Config(data=DataConfig(corpus=Corpus.TEXT, row_length=row_length), model=model)
  folder.mkdir()
  params_file.write(folder, random_params(config, task_of(model)), 5, Dtype.FLOAT32)
  run_folder.begin_run(epath.Path(folder), config, tokenizer, [])
  return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
  """The folder of an exported run for each name."""
  folder = tmp_path_factory.mktemp("exported")
  for name in NAMES:
    export(run_of(name, folder / f"{name} run"), folder / name, format_of(name))
  return folder


def format_of(name):
  return "gpt2" if "gpt2" in name else "bert"


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(folders, tmp_path, name):
  """The model, bit for bit, and the tokenizer."""
  import_model(folders / name, tmp_path / "again", format_of(name))
  found, expected = (runs.open(path).model() for path in (tmp_path / "again", folders / f"{name} run"))
  assert found.config.model == expected.config.model
  jax.tree.map(np.testing.assert_array_equal, found.params, expected.params)
  assert found.tokenizer.files() == expected.tokenizer.files()
  assert tokenizers.from_bytes(tokenizers.to_bytes(found.tokenizer)).fingerprint() == expected.tokenizer.fingerprint()
  export(tmp_path / "again", tmp_path / "shared", "safetensors")
  assert runs.open(tmp_path / "shared").tokenizer.files() == expected.tokenizer.files()
  export(tmp_path / "again", tmp_path / "back", format_of(name))
  pages = [(path / "README.md").read_text() for path in (folders / name, tmp_path / "back")]
  assert "Trained by transformer_jax; the checkpoint of step 5." in pages[0]
  assert f"Imported by transformer_jax from a folder of the format {format_of(name)}." in pages[1]
  for file in (tmp_path / "back").iterdir():
    if file.name != "README.md":
      assert file.read_bytes() == (folders / name / file.name).read_bytes(), file.name


@pytest.mark.parametrize("name", ["bert of ours", "gpt2 of ours"])
def test_positions_that_were_not_trained_are_not_read(tmp_path, name):
  """A model of 11 positions that has trained rows of 7; a folder that names more than it has is of all."""
  run = run_of(name, tmp_path / "run", row_length=7)
  export(run, tmp_path / "there", format_of(name))
  import_model(tmp_path / "there", tmp_path / "again", format_of(name))
  assert runs.open(tmp_path / "again").config.data.row_length == 7
  if "gpt2" in name:
    assert json.loads((tmp_path / "there" / "generation_config.json").read_text())["max_length"] == 7
  file = tmp_path / "there" / "tokenizer_config.json"
  for place, longest in enumerate((10**30, 0, "7", None)):
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_max_length": longest}))
    import_model(tmp_path / "there", tmp_path / f"{place}", format_of(name))
    assert runs.open(tmp_path / f"{place}").config.data.row_length == 11


@pytest.mark.parametrize("name", ["bert of ours", "gpt2 of ours"])
def test_a_sentencepiece_model_of_another_size_is_refused(folders, tmp_path, name):
  shutil.copytree(folders / name, tmp_path / "there")
  other = SentencePieceTokenizer.learn(["ab abc", "bcab c"], 268)
  (tmp_path / "there" / "tokenizer.model").write_bytes(vocabulary.sentencepiece_model(other))
  with pytest.raises(InputError, match=r"a vocabulary of 268 tokens, which do not fit the 270 rows of the embedding"):
    import_model(tmp_path / "there", tmp_path / "again", format_of(name))
  assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(("rows", "is_taken"), [(1294, True), (10_000, False)])
def test_a_table_of_far_more_rows_than_tokens_is_refused(folders, tmp_path, rows, is_taken):
  """Its file may be a hole, and each row would get a name in the vocabulary."""
  shutil.copytree(folders / "gpt2", tmp_path / "there")
  config = tmp_path / "there" / "config.json"
  values = json.loads(config.read_text())
  tokens = values["vocab_size"]
  config.write_text(json.dumps(values | {"vocab_size": rows}))
  path = tmp_path / "there" / "model.safetensors"
  arrays = {name: array for name, array in safetensors.numpy.load_file(path).items() if len(array) == tokens}
  more = {
    name: np.concatenate([array, np.zeros((rows - tokens, *array.shape[1:]), np.float32)])
    for name, array in arrays.items()
  }
  safetensors.numpy.save_file({**safetensors.numpy.load_file(path), **more}, path)
  if is_taken:
    import_model(tmp_path / "there", tmp_path / "again", "gpt2")
    return
  with pytest.raises(
    InputError, match=f"a vocabulary of {tokens} tokens, which do not fit the {rows} rows of the embed"
  ):
    import_model(tmp_path / "there", tmp_path / "again", "gpt2")


def test_the_command(run_command, folders, tmp_path):
  status, out, err = run_command("import", folders / "bert", "--from", "bert", "--workdir", tmp_path / "run")
  assert (status, out, err) == (0, f"{tmp_path / 'run'} holds the model of {folders / 'bert'}\n", [])
  status, out, err = run_command("import", folders / "bert", "--from", "gpt2", "--workdir", tmp_path / "other")
  assert (status, out, len(err)) == (2, "", 1) and "model_type is 'bert', but must be 'gpt2'" in err[0]


@pytest.mark.parametrize(("name", "text"), [("bert", None), ("gpt2", "'\"'")])
def test_a_new_run_does_not_begin_with_text_as_its_special_tokens(tmp_path, name, text):
  """A vocabulary of bytes keeps its numbers, of which the first are text."""
  other = runs.open(run_of(name, tmp_path / "run"))
  size = other.tokenizer.vocab_size
  for model in (ModelConfig(vocab_size=size), ELMoConfig(vocab_size=size), other.config.model):
    config = Config(DataConfig(row_length=11), model, TrainConfig(init_from=str(tmp_path / "run")))
    if text and model is not other.config.model:
      with pytest.raises(
        InputError, match=f"begins a text with the token 2, but .* that is {text}, which is text: begin"
      ):
        init_from.tokenizer_to_begin_with(config, other)
    else:
      assert init_from.tokenizer_to_begin_with(config, other) is other.tokenizer


@pytest.fixture
def run_command(monkeypatch, capfdbinary, tmp_path_factory):
  from tests.example_commands import command_line

  return command_line(monkeypatch, capfdbinary, tmp_path_factory.mktemp("command"))


def test_other_vocabularies_are_not_said_to_be_byte_pairs():
  import io

  import sentencepiece as library

  model = io.BytesIO()
  library.SentencePieceTrainer.train(
    sentence_iterator=iter(["ab abc bca"] * 5), model_writer=model, vocab_size=268, model_type="unigram",
    normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False, byte_fallback=True,
    pad_id=0, unk_id=1, bos_id=2, eos_id=3, hard_vocab_limit=False, minloglevel=3,
  )  # fmt: skip
  with pytest.raises(InputError, match=r"tokenizer\.json cannot express it: choose --to safetensors"):
    hf_tokenizer.require(SentencePieceTokenizer(model.getvalue()), "bert")


@pytest.mark.long
@pytest.mark.parametrize(
  ("name", "model"),
  [
    ("gpt2", model_of("gpt2")[0]),
    ("bert", model_of("bert")[0]),
    ("bert", BERTClassifierConfig(vocab_size=11, labels="short,long", **SIZES)),
  ],
)
def test_training_goes_on_from_an_imported_model(folders, tmp_path, name, model):
  import_model(folders / name, tmp_path / "run", name)
  lines = ["ab the", "a the!", "the", "a"] * 5
  classifies = isinstance(model, BERTClassifierConfig)
  text = "".join(f"{'long' if len(line) > 4 else 'short'}\t{line}\n" if classifies else f"{line}\n" for line in lines)
  (tmp_path / "text").write_text(text)
  config = Config(
    data=DataConfig(corpus=Corpus.TEXT, train=str(tmp_path / "text"), validation=str(tmp_path / "text"), row_length=11),
    model=model,
    train=TrainConfig(
      steps=2,
      batch_tokens=88,
      warmup_steps=1,
      peak_learning_rate=1e-3,
      save_every=2,
      label_smoothing=0.0,
      init_from=str(tmp_path / "run"),
    ),
    evaluate=EvaluateConfig(every=2),
  )
  loop.train(config, epath.Path(tmp_path / "tuned"))
  tuned = runs.open(tmp_path / "tuned").model()
  assert tuned.tokenizer.files() == model_of(name)[1].files()
  if name == "gpt2":
    rows = blocks.packed_rows(config, config.data.train, tuned.tokenizer).rows
    assert np.sum(rows[:, blocks.TOKENS] == 0) > 0 and not np.any(rows[:, blocks.TOKENS] == 3)
  else:
    trunk = ("trunk", "embedding", "table")
    before, after = (
      np.asarray(by_path(each, trunk)) for each in (runs.open(tmp_path / "run").model().params, tuned.params)
    )
    assert 0 < np.max(np.abs(after - before)) < 0.1


def test_long_texts_fit_into_a_batch(tmp_path):
  model = dataclasses.replace(model_of("gpt2")[0], max_positions=30_000)
  config = hf_folder.config(model, ForeignFolder(tmp_path))
  assert (config.data.row_length, config.train.batch_tokens) == (30_000, 30_000)
  assert hf_folder.config(model_of("gpt2")[0], ForeignFolder(tmp_path)).train.batch_tokens == 25_000


def by_path(params, names):
  return functools.reduce(lambda found, name: found[name], names, params)


# A stranger's folder

OLDER = {"bert": ["vocab.txt"], "gpt2": ["vocab.json", "merges.txt"]}


def with_older_files(folder, name):
  """The folder with its vocabulary in the files of older versions."""
  model = json.loads((folder / "tokenizer.json").read_text())["model"]
  if name == "bert":
    (folder / "vocab.txt").write_text("\n".join(model["vocab"]) + "\n")
  else:
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"]))
  (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", OLDER)
def test_older_files_say_the_same(folders, tmp_path, name, end):
  shutil.copytree(folders / name, tmp_path / "older")
  with_older_files(tmp_path / "older", name)
  for lines in tmp_path.glob("older/*.txt"):
    lines.write_bytes(lines.read_bytes().replace(b"\n", end))
  import_model(tmp_path / "older", tmp_path / "run", name)
  assert runs.open(tmp_path / "run").tokenizer.files() == model_of(name)[1].files()


@pytest.mark.parametrize(
  ("name", "array", "shape", "message"),
  [
    ("classes of ours", "classifier.weight", (10**12, 0), "id2label is a dict, but must be the names of 1000000000000"),
    ("classes of ours", "classifier.weight", (), "id2label is a dict, but must be the names of 0 classes"),
    ("bert", "other", (10**12, 0), "num_hidden_layers is 1000000000, but must be a whole number from 1 to"),
  ],
)
def test_sizes_without_numbers_take_no_time(folders, tmp_path, name, array, shape, message):
  """An array of no bytes can have any shape."""
  shutil.copytree(folders / name, tmp_path / "damaged")
  path = tmp_path / "damaged" / "model.safetensors"
  arrays = safetensors.numpy.load_file(path)
  safetensors.numpy.save_file({**arrays, array: np.zeros(shape, np.float32)}, path)
  if array == "other":
    config = tmp_path / "damaged" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 10**9}))
  with pytest.raises(InputError, match=message):
    bert.read(ForeignFolder(tmp_path / "damaged"))


@pytest.mark.long
@pytest.mark.parametrize(("name", "older"), [*((name, False) for name in NAMES), *((name, True) for name in OLDER)])
@damage.COUNTS
def test_a_damaged_folder_is_read_or_refused(folders, tmp_path, monkeypatch, record_property, name, older, count):
  """So many in all for each format."""
  for module in (bert, gpt2):  # tracing is slow, and most folders have the same config
    monkeypatch.setattr(module, "shapes_of", cached_shapes)
  folder, module = tmp_path / "damaged", gpt2 if format_of(name) == "gpt2" else bert
  shutil.copytree(folders / name, folder)
  if older:
    with_older_files(folder, name)

  def attempt():
    found = module.read(ForeignFolder(folder))
    found.tokenizer.encode("the ab 가\n")
    assert tokenizers.from_bytes(tokenizers.to_bytes(found.tokenizer)).vocab_size == found.config.model.vocab_size

  files = [path for path in sorted(folder.iterdir()) if path.name != "README.md"]
  count = count // (4 if module is bert else 3) + 1
  refused = damage.read_damaged(files, count, attempt, record_property, seconds=60, mebibytes=1024)
  assert count // 3 < refused < count


@functools.cache
def cached_shapes_of_model(model):
  return shapes_of(Config(data=DataConfig(corpus=Corpus.TEXT, row_length=model.max_positions), model=model))


def cached_shapes(config):
  return cached_shapes_of_model(config.model)


@pytest.mark.parametrize("content", [["x"], None, 5])
def test_an_added_token_that_is_no_text(content):
  with pytest.raises(InputError, match="vocab has no vocabulary of different tokens with different numbers"):
    hf_vocabulary._numbers("vocab", {"a": 0}, [{"content": content, "id": 1}])


def with_json(folder, name, change):
  path = folder / name
  content = json.loads(path.read_text()) if path.exists() else {}
  change(content)
  path.write_text(json.dumps(content))


@pytest.mark.parametrize(
  ("name", "setting", "value", "expected"),
  [
    ("bert", "do_lower_case", False, "do_lower_case is False, but must be True"),
    ("bert", "strip_accents", False, "strip_accents is False, but must be True"),
    ("bert", "tokenize_chinese_chars", False, "tokenize_chinese_chars is False, but must be True"),
    ("gpt2", "add_prefix_space", True, "add_prefix_space is True, but must be False"),
  ],
)
def test_two_files_that_contradict_each_other_are_refused(folders, tmp_path, name, setting, value, expected):
  """transformers follows tokenizer_config.json."""
  shutil.copytree(folders / name, tmp_path / "folder")
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update({setting: value}))
  with pytest.raises(InputError, match=r"tokenizer_config\.json: " + expected):
    import_model(tmp_path / "folder", tmp_path / "run", name)
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update({setting: not value}))
  import_model(tmp_path / "folder", tmp_path / "run", name)


@pytest.mark.parametrize("module", [bert, gpt2])
def test_a_setting_of_which_models_here_have_one_value(folders, tmp_path, module):
  """Each of these changes what the library computes; `require` takes a missing one."""
  name = module.__name__.rpartition(".")[2]
  for setting, only in module._ONLY.items():
    assert setting in SETTINGS[name]
    require_refused(folders, tmp_path, name, "config.json", lambda content: content, {setting: SETTINGS[name][setting]})
    with_json(tmp_path / "folder", "config.json", lambda content, wanted={setting: only}: content.update(wanted))
    module.read(ForeignFolder(tmp_path / "folder"))
  assert SETTINGS[name].keys() == module._ONLY.keys()


SETTINGS = {
  "bert": {
    "model_type": "roberta",
    "position_embedding_type": "relative_key",
    "type_vocab_size": 3,
    "is_decoder": True,
    "add_cross_attention": True,
    "tie_word_embeddings": False,
  },
  "gpt2": {
    "model_type": "gptj",
    "scale_attn_weights": False,
    "scale_attn_by_inverse_layer_idx": True,
    "add_cross_attention": True,
    "tie_word_embeddings": False,
  },
}


def require_refused(folders, tmp_path, name, file, part, values):
  """Changes a part of a file in a new copy of a folder, which then is refused by the name of what was changed."""
  shutil.rmtree(tmp_path / "folder", ignore_errors=True)
  shutil.copytree(folders / name, tmp_path / "folder")
  with_json(tmp_path / "folder", file, lambda content: part(content).update(values))
  [setting] = values
  with pytest.raises(InputError, match=rf"{re.escape(file)}(, \w+)?: {setting} is "):
    (bert if name == "bert" else gpt2).read(ForeignFolder(tmp_path / "folder"))


@pytest.mark.parametrize("name", ["hidden_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"])
def test_another_name_of_a_size_of_gpt2(folders, tmp_path, name):
  require_refused(folders, tmp_path, "gpt2", "config.json", lambda content: content, {name: 2})


@pytest.mark.parametrize(
  ("name", "part", "setting", "value"),
  [
    ("bert", "model", "type", "Unigram"),
    ("bert", "model", "continuing_subword_prefix", "@@"),
    ("bert", "model", "max_input_chars_per_word", 200),
    ("bert", "normalizer", "type", "Lowercase"),
    ("bert", "pre_tokenizer", "type", "Whitespace"),
    ("gpt2", "", "normalizer", {"type": "NFC"}),
    ("gpt2", "model", "dropout", 0.1),
    ("gpt2", "model", "type", "WordPiece"),
    ("gpt2", "model", "continuing_subword_prefix", "##"),
    ("gpt2", "model", "end_of_word_suffix", "</w>"),
    ("gpt2", "model", "ignore_merges", True),
    ("gpt2", "pre_tokenizer", "type", "Metaspace"),
    ("gpt2", "pre_tokenizer", "use_regex", False),
    ("gpt2", "pre_tokenizer", "add_prefix_space", True),
  ],
)
def test_a_tokenizer_that_finds_other_pieces_is_refused(folders, tmp_path, name, part, setting, value):
  require_refused(
    folders, tmp_path, name, "tokenizer.json", lambda content: content[part] if part else content, {setting: value}
  )


@pytest.mark.parametrize(
  ("name", "setting", "value", "expected"),
  [
    ("bert", "num_attention_heads", 4, "config.model.num_heads is 4, which does not divide config.model.d_model = 6"),
    ("bert", "hidden_dropout_prob", 1.0, "config.model.dropout is 1.0, but must be"),
    ("gpt2", "n_head", 4, "config.model.num_heads is 4, which does not divide config.model.d_model = 6"),
    ("gpt2", "attn_pdrop", -0.5, "config.model.attention_dropout is -0.5, but must be"),
    ("classes of ours", "id2label", {"0": "a", "1": "a"}, "config.model.labels is 'a,a', but must be the different"),
  ],
)
def test_a_setting_that_no_model_can_have_is_named_with_its_file(folders, tmp_path, name, setting, value, expected):
  shutil.copytree(folders / name, tmp_path / "folder")
  with_json(tmp_path / "folder", "config.json", lambda content: content.update({setting: value}))
  with pytest.raises(InputError, match=rf"config\.json: {re.escape(expected)}"):
    import_model(tmp_path / "folder", tmp_path / "run", format_of(name))


@pytest.mark.parametrize(
  ("lower", "word", "noted"), [(None, "The", True), (None, "the", False), (True, "The", False), (False, "The", False)]
)
def test_case_that_is_lost_by_default_is_told(folders, tmp_path, capsys, lower, word, noted):
  """A folder of old files without settings is lowercased, as in transformers."""
  folder = tmp_path / "folder"
  shutil.copytree(folders / "bert", folder)
  with_older_files(folder, "bert")
  path = folder / "vocab.txt"
  words = path.read_text().split("\n")
  path.write_text("\n".join([*words[:-3], "[UNUSED]", word, ""]))
  (folder / "tokenizer_config.json").write_text(json.dumps({} if lower is None else {"do_lower_case": lower}))
  import_model(folder, tmp_path / "run", "bert")
  told = "so texts are lowercased, as in transformers; but vocab.txt has words with capitals, such as 'The'"
  assert (told in " ".join(capsys.readouterr().err.split())) == noted
  assert runs.open(tmp_path / "run").tokenizer.vocabulary.lowercase == (lower is not False)


@pytest.mark.parametrize(("name", "value"), [("eos_token_id", [7, 0]), ("bos_token_id", 7)])
def test_a_gpt2_whose_texts_have_other_ends_in_generation_is_refused(folders, tmp_path, name, value):
  """The library's `generate` follows generation_config.json."""
  shutil.copytree(folders / "gpt2", tmp_path / "folder")
  with_json(tmp_path / "folder", "generation_config.json", lambda content: content.update({name: value}))
  message = rf"generation_config\.json: {name} is (7|a list), but must be 0 or \[0\]: config\.json says so"
  with pytest.raises(InputError, match=message):
    import_model(tmp_path / "folder", tmp_path / "run", "gpt2")
  with_json(tmp_path / "folder", "generation_config.json", lambda content: content.update({name: [0]}))
  import_model(tmp_path / "folder", tmp_path / "run", "gpt2")


@pytest.mark.parametrize(
  ("setting", "value"),
  [
    ("tokenizer_class", "BertJapaneseTokenizer"),
    ("do_basic_tokenize", False),
    ("word_tokenizer_type", "mecab"),
    ("subword_tokenizer_type", "character"),
  ],
)
def test_a_list_of_words_of_another_tokenizer_is_refused(folders, tmp_path, setting, value):
  """Japanese models have the files of a BERT, and find words in another way."""
  shutil.copytree(folders / "bert", tmp_path / "folder")
  with_older_files(tmp_path / "folder", "bert")
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update({setting: value}))
  with pytest.raises(InputError, match=rf"tokenizer_config\.json: {setting} is {value!r}, but must be"):
    import_model(tmp_path / "folder", tmp_path / "run", "bert")


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_a_classifier_without_one_label_a_text_is_refused(folders, tmp_path, problem):
  shutil.copytree(folders / "classes of ours", tmp_path / "folder")
  with_json(tmp_path / "folder", "config.json", lambda content: content.update({"problem_type": problem}))
  with pytest.raises(InputError, match=f"problem_type is '{problem}', but must be 'single_label_classification'"):
    import_model(tmp_path / "folder", tmp_path / "run", "bert")


@pytest.mark.parametrize("kind", ["BertForTokenClassification", "BertForMultipleChoice", {"x": 1}])
def test_a_model_of_another_class_is_refused(folders, tmp_path, kind):
  """One that labels each token can have the same arrays."""
  shutil.copytree(folders / "classes of ours", tmp_path / "folder")
  with_json(tmp_path / "folder", "config.json", lambda content: content.update({"architectures": [kind]}))
  named = re.escape(f"architectures names {kind}, but the format takes BertModel, ")
  with pytest.raises(InputError, match=named):
    import_model(tmp_path / "folder", tmp_path / "run", "bert")


@pytest.mark.parametrize("name", OLDER)
@pytest.mark.parametrize(
  ("file", "content"),
  [
    ("added_tokens.json", {"newword": 9}),
    ("tokenizer_config.json", {"added_tokens_decoder": {"9": {"content": "newword", "special": False}}}),
  ],
)
def test_words_added_to_older_files_are_refused(folders, tmp_path, name, file, content):
  """A special token of GPT-2 is no word of a text; BERT has its five alone."""
  shutil.copytree(folders / name, tmp_path / "folder")
  with_older_files(tmp_path / "folder", name)
  path = tmp_path / "folder" / file
  path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | content))
  with pytest.raises(InputError, match=rf"{file} adds the word 'newword' to those of its model"):
    import_model(tmp_path / "folder", tmp_path / "run", name)
  named = {"eos_token": {"content": "newword"}, "add_bos_token": False, "additional_special_tokens": ["other"]}
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update(named))
  if name == "bert":
    with pytest.raises(InputError, match=r"adds the word '(newword|other)' to those of its model"):
      import_model(tmp_path / "folder", tmp_path / "run", name)
  else:
    import_model(tmp_path / "folder", tmp_path / "run", name)
  for wrong in (3, {"9": {"content": ["x"], "special": False}}, {"9": {"special": True}}, {"9": "x"}):
    path = tmp_path / "folder" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"added_tokens_decoder": wrong}))
    with pytest.raises(InputError, match=r"tokenizer_config\.json has a token without a text"):
      import_model(tmp_path / "folder", tmp_path / "again", name)


def test_a_word_that_is_too_long_for_a_piece_is_refused(folders, tmp_path):
  shutil.copytree(folders / "bert", tmp_path / "folder")
  with_older_files(tmp_path / "folder", "bert")
  path = tmp_path / "folder" / "vocab.txt"
  words = path.read_text().split("\n")
  path.write_text("\n".join([*words[:-2], "x" * (LONGEST_PIECE + 1), ""]))
  with pytest.raises(InputError, match=r"vocab\.txt has no vocabulary of different tokens"):
    import_model(tmp_path / "folder", tmp_path / "run", "bert")


@pytest.mark.parametrize("name", OLDER)
def test_a_word_of_the_vocabulary_that_is_added_to_older_files_is_refused(folders, tmp_path, name):
  shutil.copytree(folders / name, tmp_path / "folder")
  vocabulary = json.loads((tmp_path / "folder" / "tokenizer.json").read_text())["model"]["vocab"]
  with_older_files(tmp_path / "folder", name)
  word = max((piece for piece in vocabulary if piece.isalpha()), key=vocabulary.__getitem__)
  added = {"added_tokens_decoder": {"5": {"content": word, "special": False}}}
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update(added))
  with pytest.raises(InputError, match=re.escape(f"adds the word {word!a} to those of its model")):
    import_model(tmp_path / "folder", tmp_path / "run", name)


def test_the_digests_are_of_the_files_that_were_read(folders, tmp_path):
  """Another file may be unreadable, or a link to somewhere else."""
  shutil.copytree(folders / "bert", tmp_path / "folder")
  (tmp_path / "folder" / "training_args.bin").symlink_to("/nowhere")
  import_model(tmp_path / "folder", tmp_path / "run", "bert")
  [entry] = runs.open(tmp_path / "run").provenance
  expected = {
    name: hashlib.sha256((tmp_path / "folder" / name).read_bytes()).hexdigest()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
  }
  assert entry["imported"]["sha256"] == expected


@pytest.mark.parametrize(("name", "special"), [*((name, False) for name in OLDER), ("bert", True)])
def test_added_words_are_refused(folders, tmp_path, name, special):
  """The library would find them in a text before all pieces; special ones such as [E1] are meant to stand there."""
  shutil.copytree(folders / name, tmp_path / "folder")
  flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
  vocabulary = json.loads((tmp_path / "folder" / "tokenizer.json").read_text())["model"]["vocab"]
  word = max((piece for piece in vocabulary if piece.isalpha()), key=vocabulary.__getitem__)
  token = {"id": vocabulary[word], "content": word, **flags, "special": special}
  with_json(tmp_path / "folder", "tokenizer.json", lambda content: content["added_tokens"].append(token))
  with pytest.raises(InputError, match=re.escape(f"tokenizer.json adds the word {word!a} to those of its model")):
    import_model(tmp_path / "folder", tmp_path / "run", name)


@pytest.mark.parametrize(
  ("settings", "lower", "accents", "missing"),
  [
    ({}, True, None, None),
    ({}, True, True, None),
    ({}, False, None, "do_lower_case"),
    ({"do_lower_case": False}, False, None, None),
    ({"do_lower_case": False}, False, True, "strip_accents"),
    ({"do_lower_case": True}, True, False, "strip_accents"),
    ({"do_lower_case": True, "strip_accents": False}, True, False, None),
    ({"tokenizer_class": "PreTrainedTokenizerFast"}, False, True, None),
  ],
)
def test_what_tokenizer_config_leaves_out_has_the_librarys_default(
  folders, tmp_path, settings, lower, accents, missing
):
  """As tests/parity/test_language_import.py compares with the library."""
  shutil.copytree(folders / "bert", tmp_path / "folder")
  changes = {"lowercase": lower, "strip_accents": accents}
  with_json(tmp_path / "folder", "tokenizer.json", lambda content: content["normalizer"].update(changes))
  (tmp_path / "folder" / "tokenizer_config.json").write_text(json.dumps(settings))
  if missing is None:
    import_model(tmp_path / "folder", tmp_path / "run", "bert")
  else:
    with pytest.raises(
      InputError, match=rf"tokenizer_config\.json: {missing} is missing, but must be (True|False), as"
    ):
      import_model(tmp_path / "folder", tmp_path / "run", "bert")


@pytest.mark.parametrize(
  ("name", "there"),
  [
    ("bert of ours", {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}),
    ("gpt2 of ours", {"resid_pdrop": 0.3, "embd_pdrop": 0.3, "attn_pdrop": 0.2}),
  ],
)
def test_each_dropout_has_the_name_of_the_library(tmp_path, monkeypatch, name, there):
  for key, rate in (("dropout", 0.3), ("attention_dropout", 0.2)):
    monkeypatch.setitem(SIZES, key, rate)
  export(run_of(name, tmp_path / "run"), tmp_path / "there", format_of(name))
  settings = json.loads((tmp_path / "there" / "config.json").read_text())
  assert {key: settings[key] for key in there} == there
  import_model(tmp_path / "there", tmp_path / "again", format_of(name))
  model = runs.open(tmp_path / "again").config.model
  assert (vars(model)["dropout"], vars(model)["attention_dropout"]) == (0.3, 0.2)


def test_a_copy_of_an_array_must_be_equal_to_it(folders, tmp_path):
  """Otherwise the output layer of a model that has one of its own would be lost."""
  shutil.copytree(folders / "gpt2 of ours", tmp_path / "there")
  path = tmp_path / "there" / "model.safetensors"
  arrays = safetensors.numpy.load_file(path)
  copy = arrays["transformer.wte.weight"].copy()
  safetensors.numpy.save_file({**arrays, "lm_head.weight": copy}, path)
  import_model(tmp_path / "there", tmp_path / "run", "gpt2")
  copy[5, 3] += 0.25
  safetensors.numpy.save_file({**arrays, "lm_head.weight": copy}, path)
  with pytest.raises(InputError, match=r"lm_head\.weight is not equal to transformer\.wte\.weight"):
    import_model(tmp_path / "there", tmp_path / "again", "gpt2")


def test_layers_that_a_folder_lacks_begin_as_training_draws_them(folders, tmp_path, capsys):
  """N(0, 0.02^2), biases of 0 and scales of 1."""
  shutil.copytree(folders / "bert of ours", tmp_path / "there")
  path = tmp_path / "there" / "model.safetensors"
  arrays = safetensors.numpy.load_file(path)
  later = ("cls.", "bert.pooler.")
  safetensors.numpy.save_file({name: x for name, x in arrays.items() if not name.startswith(later)}, path)
  import_model(tmp_path / "there", tmp_path / "run", "bert")
  told = " ".join(capsys.readouterr().err.split())
  assert "has no bert.pooler.dense.bias, bert.pooler.dense.weight, cls.predictions.bias, " in told
  assert "cls.seq_relationship.weight: they are new, and say nothing before they are trained" in told
  params = by_name(jax.device_get(runs.open(tmp_path / "run").model().params))
  drawn = [params[f"{name}/kernel"].ravel() for name in ("trunk/pooler", "transform", "next")]
  assert sum(map(len, drawn)) == 36 + 36 + 12
  assert np.std(np.concatenate(drawn)) == pytest.approx(0.02, rel=0.3)
  assert np.all(params["transform_norm/scale"] == 1)
  for name in ("trunk/pooler/bias", "transform/bias", "transform_norm/bias", "next/bias", "output_bias"):
    assert not np.any(params[name])


@pytest.mark.parametrize(
  ("name", "setting", "field", "default"),
  [
    ("bert", "hidden_act", "activation", Activation.GELU),
    ("bert", "layer_norm_eps", "layer_norm_epsilon", 1e-12),
    ("bert", "hidden_dropout_prob", "dropout", 0.1),
    ("bert", "attention_probs_dropout_prob", "attention_dropout", 0.1),
    ("classes of ours", "id2label", "labels", "LABEL_0,LABEL_1"),
    ("gpt2", "activation_function", "activation", Activation.GELU_TANH),
    ("gpt2", "layer_norm_epsilon", "layer_norm_epsilon", 1e-5),
    ("gpt2", "resid_pdrop", "dropout", 0.1),
    ("gpt2", "attn_pdrop", "attention_dropout", 0.1),
  ],
)
def test_what_config_json_leaves_out_has_the_librarys_default(folders, tmp_path, name, setting, field, default):
  shutil.copytree(folders / name, tmp_path / "folder")
  with_json(tmp_path / "folder", "config.json", lambda content: content.pop(setting))
  found = (gpt2 if name == "gpt2" else bert).read(ForeignFolder(tmp_path / "folder"))
  assert getattr(found.config.model, field) == default


def test_a_merge_of_number_signs_is_no_comment(folders, tmp_path):
  shutil.copytree(folders / "gpt2", tmp_path / "older")
  with_older_files(tmp_path / "older", "gpt2")
  for name, before, after in (("vocab.json", '"abab"', '"##"'), ("merges.txt", "ab ab\n", "# #\n")):
    path = tmp_path / "older" / name
    content = path.read_text()
    assert content.count(before) == 1
    path.write_text(content.replace(before, after))
  import_model(tmp_path / "older", tmp_path / "run", "gpt2")
  tokenizer = runs.open(tmp_path / "run").tokenizer
  assert tokenizer.pieces(tokenizer.encode("a##")) == ["a", "##"]


@pytest.mark.parametrize("kind", ["BertTokenizer", "PreTrainedTokenizerFast"])
def test_control_characters_are_kept_only_where_the_library_keeps_them(folders, tmp_path, kind):
  """The library's BERT deletes them, whatever tokenizer.json says."""
  shutil.copytree(folders / "bert", tmp_path / "folder")
  with_json(tmp_path / "folder", "tokenizer.json", lambda content: content["normalizer"].update(clean_text=False))
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update(tokenizer_class=kind))
  if kind == "BertTokenizer":
    with pytest.raises(InputError, match="clean_text is False, but must be True: the library's BertTokenizer deletes"):
      import_model(tmp_path / "folder", tmp_path / "run", "bert")
  else:
    import_model(tmp_path / "folder", tmp_path / "run", "bert")
    known, files = runs.open(tmp_path / "run").tokenizer.vocabulary, ("tokenizer.json", "tokenizer_config.json")
    hf_tokenizer.write_subwords(tmp_path, known, {})  # as `export` does
    there, settings = (json.loads((tmp_path / name).read_text()) for name in files)
    assert known.clean is False and there["normalizer"]["clean_text"] is False and settings["tokenizer_class"] == kind


def test_the_masks_of_an_older_gpt2_are_no_parameters(folders, tmp_path):
  """They are in the published file, whose names have no `transformer.`."""
  shutil.copytree(folders / "gpt2", tmp_path / "older")
  path = tmp_path / "older" / "model.safetensors"
  arrays = {name.removeprefix("transformer."): array for name, array in safetensors.numpy.load_file(path).items()}
  masks = {"h.0.attn.bias": np.tri(11, dtype=np.uint8)[None, None], "h.0.attn.masked_bias": np.array(-1e4, np.float32)}
  for prefix in ("", "transformer."):
    named = {prefix + name: array for name, array in {**arrays, **masks}.items()}
    safetensors.numpy.save_file(named, path)
    found, expected = (gpt2.read(ForeignFolder(each)).arrays for each in (tmp_path / "older", folders / "gpt2"))
    assert found.keys() == expected.keys()
    for name, array in found.items():
      np.testing.assert_array_equal(array, expected[name])


def test_two_arrays_for_one_parameter_are_refused(folders, tmp_path):
  shutil.copytree(folders / "gpt2", tmp_path / "there")
  path = tmp_path / "there" / "model.safetensors"
  arrays = safetensors.numpy.load_file(path)
  safetensors.numpy.save_file({**arrays, "wte.weight": arrays["transformer.wte.weight"] + 1}, path)
  with pytest.raises(InputError, match="which are one: copy it again"):
    gpt2.read(ForeignFolder(tmp_path / "there"))


@pytest.mark.parametrize("name", OLDER)
def test_a_vocabulary_of_more_tokens_than_the_table_has_rows_is_refused(folders, name):
  """Its last tokens would be lost. The folder is named once."""
  folder, tokens = ForeignFolder(folders / name), {"bert": 11, "gpt2": 260}[name]
  read = {"bert": hf_vocabulary.wordpiece, "gpt2": functools.partial(hf_vocabulary.byte_level, ends=(0, 0))}[name]
  rows = tokens - 1
  message = f"^{re.escape(str(folder.path))} has a vocabulary of {tokens} tokens, which do not fit the {rows} rows"
  with pytest.raises(InputError, match=message):
    read(folder, rows)


def test_rows_without_a_piece_and_added_special_tokens_are_no_text(folders, tmp_path):
  """Texts that a GPT-2 writes would have their names."""
  shutil.copytree(folders / "gpt2", tmp_path / "folder")
  added = {"id": 260, "content": "<|pad|>", "special": True}
  with_json(tmp_path / "folder", "tokenizer.json", lambda content: content["added_tokens"].append(added))
  tokenizer = hf_vocabulary.byte_level(ForeignFolder(tmp_path / "folder"), 263, (0, 0))
  assert tokenizer.vocabulary.pieces[260] == "<|pad|>"
  assert tokenizer.decode([0, *tokenizer.encode("ab"), 260, 261, 262]) == "ab"


def test_a_bert_may_have_other_names_for_its_special_tokens(folders, tmp_path):
  """As texts, or as objects with a text."""
  shutil.copytree(folders / "bert", tmp_path / "folder")
  for name in ("tokenizer.json", "tokenizer_config.json"):
    path = tmp_path / "folder" / name
    path.write_text(path.read_text().replace("[CLS]", "<c>"))
  mask = {"mask_token": {"content": "[MASK]", "lstrip": True}}
  with_json(tmp_path / "folder", "tokenizer_config.json", lambda content: content.update(mask))
  found = hf_vocabulary.wordpiece(ForeignFolder(tmp_path / "folder"), 11).vocabulary
  assert found.special == ("[PAD]", "[MASK]", "<c>", "[SEP]")

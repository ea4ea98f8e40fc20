"""What a new run takes from another one: its sizes, unless they are given, and nothing of how it was trained."""

import dataclasses
import re
import shutil
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from transformer_jax import runs
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig, serialization
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.subwords import SubwordTokenizer
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, GPTConfig
from transformer_jax.model.config import Activation, Dtype, ModelConfig, Remat
from transformer_jax.runs import init_from, resume, run_folder
from transformer_jax.runtime.errors import InputError
from transformer_jax.trainer import loop

BERT = BERTConfig(
  vocab_size=311, num_layers=3, d_model=10, d_ff=17, num_heads=5, max_positions=19, dropout=0.3, dtype=Dtype.BFLOAT16
)
DATA = DataConfig(row_length=13)


def write_config(folder, config):
  folder.mkdir(parents=True)
  (folder / run_folder.CONFIG).write_text(serialization.to_json(config))
  return epath.Path(folder)


@pytest.fixture
def bert(tmp_path):
  return write_config(tmp_path / "bert", Config(data=DATA, model=BERT))


def classifier(bert, **model):
  train = TrainConfig(init_from=str(bert))
  return Config(data=DATA, model=BERTClassifierConfig(labels="a,b", **model), train=train)


def test_sizes_are_taken_and_training_is_not(bert, capfd):
  config = classifier(bert, dropout=0.2)
  found = init_from.config_from(runs.open(bert).config, config)
  sizes = {"vocab_size": 311, "num_layers": 3, "d_model": 10, "d_ff": 17, "num_heads": 5, "max_positions": 19}
  assert found.model == BERTClassifierConfig(labels="a,b", dropout=0.2, **sizes)
  assert dataclasses.replace(found, model=config.model) == config
  [line] = capfd.readouterr().err.splitlines()
  assert line.startswith(f"as the run in {bert}: config.model.vocab_size=311 ")
  assert set(re.findall(r"config\.model\.(\w+)=", line)) == sizes.keys()
  again = init_from.config_from(runs.open(bert).config, found)
  assert again == found and capfd.readouterr().err == ""
  assert init_from.config_from(runs.open(bert), config) == found


@pytest.mark.parametrize(
  "options",
  [{"attention_dropout": 0.2}, {"remat": Remat.LAYER}, {"dtype": Dtype.BFLOAT16, "fused_attention": True}],
)
def test_no_option_of_training_is_taken(options):
  found = init_from.config_from(Config(model=ModelConfig(d_ff=17, **options)), Config(model=ModelConfig()))
  assert found.model == ModelConfig(d_ff=17)


def test_what_is_given_counts(bert, capfd):
  config = classifier(bert, d_ff=23, dtype=Dtype.FLOAT32)
  found = init_from.config_from(runs.open(bert).config, config, {"model.d_ff", "model.labels", "data.train"})
  assert (found.model.vocab_size, vars(found.model)["d_ff"], found.model.dtype) == (311, 23, Dtype.FLOAT32)
  assert "d_ff" not in capfd.readouterr().err


def test_sizes_that_do_not_fit_those_that_are_given_are_one_sentence(bert):
  config = classifier(bert, num_heads=3, d_model=12)
  with pytest.raises(InputError, match=r"config\.model\.num_heads is 3, which does not divide config\.model\.d_model"):
    init_from.config_from(runs.open(bert).config, config, {"model.num_heads"})
  longer = dataclasses.replace(classifier(bert), data=DataConfig(row_length=29))
  with pytest.raises(InputError, match=r"config\.model\.max_positions is 19, less than config\.data\.row_length = 29"):
    init_from.config_from(runs.open(bert).config, longer)


def test_of_another_family_it_is_what_both_have(tmp_path, capfd):
  other = ModelConfig(vocab_size=293, num_layers=2, d_model=14, d_ff=11, num_heads=7, attention_window=5)
  run = runs.open(write_config(tmp_path / "run", Config(model=other)))
  found = init_from.config_from(run.config, Config(data=DATA, model=GPTConfig(num_heads=1))).model
  sizes = {"vocab_size": 293, "num_layers": 2, "d_model": 14, "d_ff": 11, "num_heads": 7, "max_positions": 1024}
  assert found == GPTConfig(**sizes, activation=Activation.RELU, layer_norm_epsilon=1e-6)
  assert " config.model.activation=relu " in capfd.readouterr().err


@pytest.mark.parametrize(
  ("begun", "tokenizer", "data", "rows"),
  [
    ("", None, DataConfig(row_length=5), 5),
    ("another run", None, DataConfig(row_length=5), 7),
    ("", object.__new__(SubwordTokenizer), DataConfig(row_length=5), 7),
    ("", None, DataConfig(row_length=7, max_length=5), 5),
  ],
  ids=["own", "begun", "bert", "shorter texts"],
)
def test_positions_repeat_the_rows_that_the_other_run_has_learned(begun, tokenizer, data, rows, capfd):
  """A run with rows of 5 has learned 5 of 7; one that was begun with a run's or a library's model may have all."""
  tables = {size: {"positions": {"table": jnp.arange(2.0 * size).reshape(size, 2)}} for size in (7, 11)}
  other = SimpleNamespace(
    config=Config(data=data, train=TrainConfig(init_from=begun)),
    model=lambda: SimpleNamespace(params=tables[7], step=3),
    tokenizer=tokenizer,
  )
  found = init_from.params_from(other, Config(), tables[11])[0]["positions"]["table"]
  np.testing.assert_array_equal(found[:, 0], 2 * (np.arange(11) % rows))
  assert f"positions/table from row {rows} on" in capfd.readouterr().err
  enough = Config(data=DataConfig(row_length=rows))
  init_from.params_from(other, enough, tables[11])
  assert "from row" not in capfd.readouterr().err


def test_positions_of_another_width_are_new():
  other = SimpleNamespace(
    config=Config(),
    model=lambda: SimpleNamespace(params={"positions": {"table": jnp.ones((7, 3))}, "bias": jnp.ones(2)}, step=3),
    tokenizer=None,
  )
  random = {"positions": {"table": jnp.zeros((7, 2))}, "bias": jnp.zeros(2)}
  found, step = init_from.params_from(other, Config(), random)
  np.testing.assert_array_equal(found["positions"]["table"], np.zeros((7, 2)))
  np.testing.assert_array_equal(found["bias"], np.ones(2))
  assert step == 3


def test_the_positions_that_count_are_those_of_the_other_run(bert):
  """A config file's model may have fewer than its rows need."""
  config = dataclasses.replace(classifier(bert, max_positions=11), data=DataConfig(row_length=17))
  other = runs.open(bert).config
  assert init_from.config_from(other, config).model.max_positions == 19
  with pytest.raises(InputError, match=r"max_positions is 11, less than config\.data\.row_length = 17"):
    init_from.config_from(other, config, {"model.max_positions"})
  with pytest.raises(InputError, match=r"max_positions is 11, less than config\.data\.row_length = 17"):
    loop.train(config, "nowhere")


@pytest.mark.parametrize(
  ("model", "message"),
  [
    ({"begin": 100}, r"begins a text with the token 100, but .* that is '`', which is text: leave both out"),
    ({"end": 2}, "ends a text with the token 2, but .* that is '<s>', which is never written: leave both out"),
    ({"begin": 3, "end": 3}, ""),
  ],
)
@pytest.mark.parametrize("chosen", [False, True])
def test_the_vocabulary_of_a_new_run_has_its_own_tokens_around_a_text(tmp_path, model, message, chosen):
  (tmp_path / "text").write_text("ein zwei drei\n" * 7)
  [content] = SentencePieceTokenizer.learn(["ein zwei drei"] * 7, 270).files().values()
  (tmp_path / "tokenizer.model").write_bytes(content)
  data = DataConfig(
    corpus=Corpus.TEXT, train=str(tmp_path / "text"), tokenizer=str(tmp_path / "tokenizer.model") if chosen else ""
  )
  config = Config(data=data, model=GPTConfig(vocab_size=270, **model))
  if message:
    with pytest.raises(InputError, match=f"config.model.begin and config.model.end: the model {message}"):
      init_from.tokenizer_to_begin_with(config, None)
  else:
    assert init_from.tokenizer_to_begin_with(config, None).vocab_size == 270


def test_a_table_that_the_other_run_lacks_is_not_frozen():
  table = {"table": jnp.ones((7, 2))}
  other = SimpleNamespace(
    config=Config(), model=lambda: SimpleNamespace(params={"target_embedding": table}, step=3), tokenizer=None
  )
  config = Config(train=TrainConfig(init_from="run", freeze_embeddings=True))
  both = {"target_embedding": table, "own_source_embedding": table}
  with pytest.raises(InputError, match="would leave own_source_embedding/table random, as the run in run has no such"):
    init_from.params_from(other, config, both)
  assert init_from.params_from(other, config, {"target_embedding": table})[0].keys() == {"target_embedding"}


def test_a_run_without_parameters_of_these_names_and_shapes_is_refused():
  """Otherwise all would begin at random."""
  other = SimpleNamespace(
    config=Config(), model=lambda: SimpleNamespace(params={"a": jnp.ones(2), "b": jnp.ones(3)}, step=3), tokenizer=None
  )
  config = Config(train=TrainConfig(init_from="run"))
  with pytest.raises(InputError, match=r"the run in run has no parameters of this model's names and shapes$"):
    init_from.params_from(other, config, {"a": jnp.zeros(3), "c": jnp.zeros(2)})
  assert init_from.params_from(other, config, {"a": jnp.zeros(2), "c": jnp.zeros(2)})[1] == 3


def test_options_that_differ_are_named_as_they_are_given(capfd):
  tables = {"positions": {"table": jnp.ones((7, 2))}}
  other = SimpleNamespace(
    config=Config(model=ModelConfig(dtype=Dtype.FLOAT32)),
    model=lambda: SimpleNamespace(params=tables, step=3),
    tokenizer=None,
  )
  init_from.params_from(other, Config(model=ModelConfig(dtype=Dtype.BFLOAT16, dropout=0.5)), tables)
  assert "config.model.dtype is bfloat16, was float32; config.model.dropout is 0.5, was 0.1" in capfd.readouterr().err


def test_a_run_that_has_begun_goes_on_with_its_own_sizes(bert, tmp_path):
  """The other one may be gone."""
  config = classifier(bert)
  assert init_from.config_to_train_with(Config(), set(), tmp_path / "run") == Config()
  begun = init_from.config_to_train_with(config, set(), tmp_path / "run")
  assert begun.model.vocab_size == 311
  workdir = write_config(tmp_path / "run", begun)
  (workdir / "checkpoints" / "3").mkdir(parents=True)
  shutil.rmtree(bert)
  assert init_from.config_to_train_with(config, set(), workdir) == begun
  with pytest.raises(InputError, match="is not a run folder"):
    init_from.config_to_train_with(config, set(), tmp_path / "new")
  given = init_from.config_to_train_with(
    dataclasses.replace(config, model=dataclasses.replace(config.model, d_ff=5)), {"model.d_ff"}, workdir
  )
  with pytest.raises(InputError, match=r"config\.model\.d_ff is 5, but the run in .* was begun with 17"):
    resume.run_to_go_on_with(workdir, given)


def test_a_folder_has_the_config_to_go_on_with(bert, tmp_path):
  assert resume.config_of_run(tmp_path / "nowhere") is None
  assert resume.config_of_run(bert) == Config(data=DATA, model=BERT)  # though it has no checkpoint yet
  assert resume.begun(bert) is None
  (bert / "checkpoints" / "3").mkdir(parents=True)
  begun = resume.begun(bert)
  assert begun is not None and begun.config.model == BERT

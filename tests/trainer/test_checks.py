"""What is checked and said of a config before training."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, EvaluateConfig, TrainConfig, flags
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.packing import PARTS
from transformer_jax.data.packing_report import PackingReport
from transformer_jax.language.config import GPTConfig
from transformer_jax.model.config import ModelConfig
from transformer_jax.registry import Family
from transformer_jax.runtime import hosts
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.trainer import checks

SHIPPED = (
  "base",
  "big",
  "bert",
  "bert:classify",
  "elmo",
  "en_de",
  "en_ko",
  "gpt",
  "iwslt14",
  "multi30k",
  "numbers",
  "parsing",
  "rnn",
  "text",
)


def config(*, every=6, save_every=3, patience=0, learned=False, longest=64, init_from=""):
  return Config(
    data=DataConfig(corpus=Corpus.TEXT, train="a", validation="b", row_length=32),
    model=ModelConfig(vocab_size=277, learned_positions=learned, **({"max_positions": 999} if learned else {})),
    train=TrainConfig(save_every=save_every, patience=patience, init_from=init_from),
    evaluate=EvaluateConfig(every=every),
    decode=DecodeConfig(max_source_length=longest),
  )


def said(config, capfd):
  checks.warn(config)
  return capfd.readouterr().err


LONG, EMPTY = "pairs skipped, longer than 128 tokens (the longest has 1,275)", "pairs skipped, with an empty side"


@pytest.mark.parametrize(
  ("long", "empty", "told"),
  [(390, 2, "long lines need"), (2, 390, "check that line n"), (2, 0, "long lines need"), (1, 0, ""), (0, 0, "")],
)
def test_a_text_that_is_mostly_skipped_is_told_of(capfd, long, empty, told):
  found = {"pairs": 1, "source tokens": 20}
  checks.warn_of_skipped(PackingReport(found=found, left_out={LONG: long, EMPTY: empty}))
  first = f"most of the training text is skipped, {long + empty} of {long + empty + 1} pairs:\n  "
  err = capfd.readouterr().err
  assert err.startswith(first + told) and err.count("\n") == 2 if told else err == ""


@pytest.mark.parametrize(
  "options",
  [{}, {"every": 0}, {"save_every": 4, "patience": 1}, {"save_every": 0, "patience": 1}, {"save_every": 0, "every": 0}],
)
def test_where_each_validation_has_a_checkpoint_nothing_is_said(capfd, options):
  assert said(config(**options), capfd) == ""


def test_a_validation_without_a_checkpoint_is_said(capfd):
  assert "= 6 is no multiple of config.train.save_every = 4:\n" in said(config(save_every=4), capfd)


def test_validations_of_which_only_the_last_has_a_checkpoint_are_said(capfd):
  message = "config.train.save_every is 0: --step best takes the last checkpoint, the only one\n"
  without = config(save_every=0)
  assert said(without, capfd) == message
  assert said(dataclasses.replace(without, evaluate=EvaluateConfig(every=without.train.steps)), capfd) == ""


@pytest.mark.parametrize(("text", "message"), [("", "is empty: no checkpoint"), ("a", "is the training text:\n")])
def test_a_validation_that_tells_nothing_is_said(capfd, text, message):
  without = config()
  err = said(dataclasses.replace(without, data=dataclasses.replace(without.data, validation=text)), capfd)
  assert err.startswith(f"config.data.validation {message}") and max(map(len, err.splitlines())) <= 80


@pytest.mark.parametrize(("steps", "is_said"), [(3999, True), (4000, True), (4001, False)])
def test_a_warmup_without_an_end_is_said(capfd, steps, is_said):
  err = said(dataclasses.replace(config(), train=TrainConfig(save_every=3, steps=steps, warmup_steps=4000)), capfd)
  assert (f"warmup_steps = 4000 is not below config.train.steps = {steps}:\n  the learning rate" in err) == is_said
  assert max(map(len, err.splitlines()), default=0) <= 80


@pytest.mark.parametrize(
  ("rows", "accumulation", "filled"),
  [(195, 24, 384), (195, 1, None), (192, 24, None), (176, 24, None), (154, 24, None), (153, 24, 192), (3, 1, 8)],
)
def test_a_batch_with_many_empty_rows_is_said(capfd, monkeypatch, rows, accumulation, filled):
  monkeypatch.setattr("transformer_jax.runtime.devices.device_count", lambda: 8)
  train = TrainConfig(save_every=3, batch_tokens=rows * 32 + 31, accumulation=accumulation)
  err = said(dataclasses.replace(config(), train=train), capfd)
  assert (f"of {rows} rows gets {filled - rows} empty ones" in err) if filled else (err == "")
  assert f"multiple of {8 * accumulation} rows" in err or not filled
  assert max(map(len, err.splitlines()), default=0) <= 80


def test_languages_that_are_never_learned_are_said(capfd):
  data = dataclasses.replace(config().data, tags=True, train="a:en-de;b:en-fr", validation="c:fr-de", test="d:de+cs+en")
  err = said(dataclasses.replace(config(), data=data), capfd)
  assert [line.split(" has translations to ")[-1] for line in err.splitlines()[::2]] == [
    f"{language}, but config.data.train has none:" for language in ("cs", "en")
  ]
  assert "<2cs> is no tag of this model" in err and max(map(len, err.splitlines())) <= 80
  assert said(dataclasses.replace(config(init_from="other"), data=data), capfd) == ""  # which may know them


def test_positions_that_are_never_learned_are_said(capfd):
  assert "= 64 is more than training reads, 32 tokens:" in said(config(learned=True), capfd)
  for without in (config(), config(learned=True, longest=32), config(learned=True, init_from="other")):
    assert said(without, capfd) == ""


@pytest.mark.parametrize("name", SHIPPED)
def test_the_validations_of_the_configs_have_checkpoints(capfd, name):
  found = flags.read_config(name, {})
  validation = found.data.validation or "text"  # some configs leave the text to the user
  assert said(dataclasses.replace(found, data=dataclasses.replace(found.data, validation=validation)), capfd) == ""


def test_a_language_model_of_ours_reads_text_alone(monkeypatch):
  """A data set is not downloaded before that is said."""
  monkeypatch.setattr(checks, "open_corpus", lambda *_: pytest.fail("a corpus of pairs is opened"))
  data = DataConfig(corpus=Corpus.TFDS, dataset="wmt14_translate/de-en", train="train", row_length=64)
  with pytest.raises(InputError, match=r"config\.data\.corpus is 'tfds', but a language model reads files"):
    checks.require_texts_exist(Config(data=data, model=GPTConfig()))


def test_a_task_of_another_package_may_read_any_corpus(monkeypatch):
  opened = []
  monkeypatch.setattr(checks, "open_corpus", lambda data, which: opened.append(which))
  monkeypatch.setattr(checks.registry, "family_of", lambda model: Family("own:Config", "own:Model", "own:TASK"))
  data = DataConfig(corpus=Corpus.REGISTERED, dataset="own", train="a", validation="b", row_length=64)
  checks.require_texts_exist(Config(data=data, model=GPTConfig()))
  assert opened == ["a", "b"]


@pytest.mark.parametrize("model", [ModelConfig(), GPTConfig()], ids=lambda model: type(model).__name__)
def test_hosts_compare_all_three_texts(tmp_path, model):
  for name in "abc":
    for language in ("en", "de"):
      (tmp_path / f"{name}.{language}").write_text(f"{name} {language}\n")
  train, validation, test = (str(tmp_path / name) for name in "abc")
  data = DataConfig(corpus=Corpus.TEXT, train=train, validation=validation, test=test)
  task = SimpleNamespace(packed_rows=lambda config, which, _: SimpleNamespace(fingerprint=f"rows of {which}"))
  packed = SimpleNamespace(fingerprint="rows of the run")
  found = checks.digests_of_texts(Config(data=data, model=model), task, None, packed)
  assert found == {
    "the text of config.data.train": "rows of the run",
    "the text of config.data.validation": f"rows of {validation}",
    "the text of config.data.test": open_corpus(data, test).fingerprint() if model.translates else f"rows of {test}",
  }


def test_several_hosts_cannot_debug(monkeypatch):
  monkeypatch.setattr(hosts, "count", lambda: 2)
  checks.require_equal_hosts(config())
  with pytest.raises(InputError, match=r"config\.debug looks at one device alone: .*--hosts=1"):
    checks.require_equal_hosts(dataclasses.replace(config(), debug=True))


@pytest.mark.parametrize(("on_cpu", "rows"), [(True, 8), (False, 1)])
def test_devices_that_are_cpus_share_the_memory(monkeypatch, on_cpu, rows):
  """8 of them hold as many rows as fit; a device of its own memory holds those of its share alone."""
  size = 32 * (PARTS * np.dtype(np.uint16).itemsize + 512 * 4)  # of a row's tokens and embeddings
  whole = Config(
    data=DataConfig(row_length=32), model=ModelConfig(vocab_size=277), train=TrainConfig(batch_tokens=8 * 32)
  )
  monkeypatch.setattr(checks.devices, "on_cpu", lambda: on_cpu)
  monkeypatch.setattr(checks.devices, "device_count", lambda: 8)
  monkeypatch.setattr(checks.devices, "local_device_count", lambda: 8)
  monkeypatch.setattr(checks.devices, "memory", lambda: rows * size)
  checks._require_memory(whole, TASK)
  monkeypatch.setattr(checks.devices, "memory", lambda: rows * size - 1)
  with pytest.raises(InputError, match=r"config\.train\.batch_tokens is 256"):
    checks._require_memory(whole, TASK)


def test_a_batch_of_one_row_is_one(capfd, monkeypatch):
  monkeypatch.setattr("transformer_jax.runtime.devices.device_count", lambda: 2)
  err = said(dataclasses.replace(config(), train=TrainConfig(save_every=3, batch_tokens=32)), capfd)
  assert "each batch of 1 row gets 1 empty one, as slow as" in err

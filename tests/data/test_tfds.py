"""TensorFlow Datasets without TensorFlow: builders of our own, prepared for real."""

import io
import json
import shutil
import sys
import tarfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
import tensorflow_datasets as tfds
from array_record.python.array_record_module import ArrayRecordWriter
from tensorflow_datasets.core.download import extractor

from transformer_jax.config import Corpus, DataConfig
from transformer_jax.data import pipeline
from transformer_jax.data import tfds as module
from transformer_jax.data.corpus import open_corpus
from transformer_jax.runtime.errors import InputError, RunError

PAIRS = [(f"sentence {i}", f"Satz {i} ü") for i in range(1499)]


class TinyPairs(tfds.core.GeneratorBasedBuilder):
  """Two languages as the translation datasets have them."""

  VERSION = tfds.core.Version("1.2.3")

  def _info(self):
    return tfds.core.DatasetInfo(builder=self, features=tfds.features.Translation(languages=("en", "de")))

  def _split_generators(self, dl_manager):
    return {
      "train": self._generate_examples(PAIRS),
      "test": self._generate_examples([("two\nlines", ""), ("\0", " x ")]),
    }

  def _generate_examples(self, pairs):
    for i, (en, de) in enumerate(pairs):
      yield i, {"en": en, "de": de}


class TinyArchive(tfds.core.GeneratorBasedBuilder):
  """Two texts in archives, and a feature that is none; `archives` are local files."""

  VERSION = tfds.core.Version("1.0.0")
  archives = ()

  def _info(self):
    text = tfds.features.Text()
    return tfds.core.DatasetInfo(
      builder=self, features=tfds.features.FeaturesDict({"a": text, "b": text, "n": np.int64})
    )

  def _split_generators(self, dl_manager):
    return {"train": self._generate_examples(dl_manager.extract(list(self.archives)))}

  def _generate_examples(self, folders):
    for n, folder in enumerate(folders):
      for i, line in enumerate((folder / "inner" / "text.tsv").read_text(encoding="utf-8").splitlines()):
        a, b = line.split("\t")
        yield f"{n} {i}", {"a": a, "b": b, "n": i}


class TinySlow(TinyPairs):
  """The dataset whose preparations overlap, if there are two."""

  prepared: ClassVar[list[str]] = []

  def _generate_examples(self, pairs):
    self.prepared.append(threading.current_thread().name)
    time.sleep(0.2)
    yield from super()._generate_examples(pairs)


class TinyByHand(TinyPairs):
  """Files that the user must fetch."""

  MANUAL_DOWNLOAD_INSTRUCTIONS = "Fetch them from a place.\nAnd put them there."

  def _split_generators(self, dl_manager):
    return {"train": self._generate_examples([(str(dl_manager.manual_dir), "x")])}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  return str(tmp_path_factory.mktemp("tfds"))


def config(data_dir, dataset="tiny_pairs", source="en", target="de"):
  return DataConfig(
    corpus=Corpus.TFDS, dataset=dataset, source_language=source, target_language=target, data_dir=data_dir
  )


def swap(pairs):
  return [(target, source) for source, target in pairs]


def test_reads_a_prepared_dataset_in_both_directions(data_dir):
  forward = open_corpus(config(data_dir), "train")
  first = list(forward)
  assert sorted(first) == sorted(PAIRS)
  assert list(forward) == first
  assert list(open_corpus(config(data_dir, source="de", target="en"), "train")) == swap(first)
  assert list(open_corpus(config(data_dir), "train[:50%]")) == first[: round(len(PAIRS) / 2)]
  assert list(open_corpus(config(data_dir), "train[1397:]+test"))[:102] == first[1397:]
  assert "tensorflow" not in sys.modules


def test_one_of_two_programs_prepares_the_dataset_and_the_other_waits(tmp_path):
  """The lock is of the open file, so two threads are as two processes."""
  with ThreadPoolExecutor(2) as executor:
    found = list(executor.map(lambda _: sorted(open_corpus(config(str(tmp_path), "tiny_slow"), "train")), range(2)))
  assert found == [sorted(PAIRS)] * 2
  assert len(set(TinySlow.prepared)) == 1


def test_keeps_empty_sides_and_makes_a_line_feed_a_space(data_dir):
  assert sorted(open_corpus(config(data_dir), "test")) == [("\0", " x "), ("two lines", "")]


@pytest.mark.parametrize(
  "damage", [lambda file: file.unlink(), lambda file: file.write_bytes(file.read_bytes()[:-70_000])]
)
def test_a_missing_or_damaged_file_is_named_as_such(data_dir, tmp_path, damage):
  [*open_corpus(config(data_dir), "train")]
  shutil.copytree(data_dir, tmp_path / "copy")
  data = config(str(tmp_path / "copy"))
  for file in (tmp_path / "copy").rglob("*train*"):
    damage(file)
  with pytest.raises(InputError, match=r"^cannot read the split 'train' of tiny_pairs: .*; prepare it again in "):
    pipeline.learn_tokenizer(data, 280)


def test_records_that_are_none_are_named_as_such(data_dir, tmp_path):
  [*open_corpus(config(data_dir), "train")]
  shutil.copytree(data_dir, tmp_path / "copy")
  data = config(str(tmp_path / "copy"))
  [file] = (tmp_path / "copy").rglob("*train*")
  for record, message in (
    (b"\xff" * 7, r"^cannot read the split 'train' of .*; prepare"),
    (b"", "example 0: the text is"),
  ):
    writer = ArrayRecordWriter(str(file), "group_size:1")
    for _ in PAIRS:
      writer.write(record)
    writer.close()
    with pytest.raises(InputError, match=message):
      list(open_corpus(data, "train"))


@pytest.mark.parametrize("content", ["", '{"name": ', '{"version": 5}'])
def test_damaged_facts_of_a_dataset_are_named_as_such(data_dir, tmp_path, content):
  [*open_corpus(config(data_dir), "train")]
  shutil.copytree(data_dir, tmp_path / "copy")
  for file in (tmp_path / "copy").rglob("dataset_info.json"):
    file.write_text(content)
  with pytest.raises(InputError, match=r"^config.data.dataset is 'tiny_pairs', which cannot be used: "):
    open_corpus(config(str(tmp_path / "copy")), "train")


def test_a_lock_that_is_a_link_empties_no_file(data_dir, tmp_path):
  [*open_corpus(config(data_dir), "train")]
  shutil.copytree(data_dir, tmp_path / "copy")
  (tmp_path / "mine").write_text("kept")
  [file] = (tmp_path / "copy").rglob(".lock")
  file.unlink()
  file.symlink_to(tmp_path / "mine")
  assert len(list(open_corpus(config(str(tmp_path / "copy")), "train"))) == len(PAIRS)
  assert (tmp_path / "mine").read_text() == "kept"


def test_the_fingerprint_is_that_of_content_split_and_direction(data_dir, tmp_path, monkeypatch):
  prints = [open_corpus(config(data_dir), split).fingerprint() for split in ("train", "test", "train[:7]", "train[7:]")]
  prints.append(open_corpus(config(data_dir, source="de", target="en"), "train").fingerprint())
  assert open_corpus(config(data_dir), "train").fingerprint() == prints[0]
  monkeypatch.setattr(sys.modules[__name__], "PAIRS", [("Sentence 0", PAIRS[0][1]), *PAIRS[1:]])
  prints.append(open_corpus(config(str(tmp_path)), "train").fingerprint())
  assert len(set(prints)) == len(prints)


def make_archive(path, content):
  if path.suffix == ".zip":
    with zipfile.ZipFile(path, "w") as archive:
      archive.writestr("inner/text.tsv", content)
  else:
    with tarfile.open(path, "w:gz") as archive:
      member = tarfile.TarInfo("inner/text.tsv")
      member.size = len(content)
      archive.addfile(member, io.BytesIO(content))
  return path


def test_unpacks_archives_without_tensorflow(tmp_path, monkeypatch):
  archives = [make_archive(tmp_path / "one.tar.gz", "x\tüx\n".encode()), make_archive(tmp_path / "two.zip", b"y\tz\n")]
  monkeypatch.setattr(TinyArchive, "archives", archives)
  before = extractor.tf
  pairs = open_corpus(config(str(tmp_path / "data"), "tiny_archive", "b", "a"), "train")
  assert sorted(pairs) == [("z", "y"), ("üx", "x")]
  assert extractor.tf is before
  assert "tensorflow" not in sys.modules


def test_says_what_to_install_where_the_extractor_is_another_one(tmp_path, monkeypatch):
  monkeypatch.setattr(TinyArchive, "archives", [make_archive(tmp_path / "one.zip", b"y\tz\n")])
  monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())  # leaves the extractor as it is
  with pytest.raises(InputError, match="pip install tensorflow-cpu"):
    open_corpus(config(str(tmp_path / "data"), "tiny_archive", "a", "b"), "train")


def test_a_damaged_archive(tmp_path, monkeypatch):
  path = tmp_path / "one.tar.gz"
  path.write_bytes(b"garbage")
  monkeypatch.setattr(TinyArchive, "archives", [path])
  with pytest.raises(RunError, match=r"cannot prepare tiny_archive: .*one\.tar\.gz"):
    open_corpus(config(str(tmp_path / "data"), "tiny_archive", "a", "b"), "train")


@pytest.mark.parametrize(
  ("dataset", "split", "source", "words"),
  [
    ("tiny_pears", "train", "en", ["config.data.dataset is 'tiny_pears'", "catalog"]),
    ("tiny_pairs:7.0.0", "train", "en", ["config.data.dataset is 'tiny_pairs:7.0.0'", "1.2.3"]),
    ("wmt14_translate/de-xx", "train", "en", ["config.data.dataset is 'wmt14_translate/de-xx'", "de-xx not found"]),
    ("a b", "train", "en", ["config.data.dataset is 'a b'"]),
    ("huggingface:tiny_pairs", "train", "en", ["config.data.dataset is 'huggingface:", "it is of huggingface"]),
    ("tiny_pairs/a=1", "train", "en", ["config.data.dataset is 'tiny_pairs/a=1'"]),
    ("tiny_pairs", "train", "fr", ["config.data.source_language is 'fr'", "it has en, de"]),
    ("mnist", "train", "en", ["config.data.source_language is 'en'", "it has none"]),
    ("tiny_pairs", "tran", "en", ["'tran'", "its splits are train, test"]),
    ("tiny_pairs", "train[:x]", "en", ["'train[:x]'", "its splits are train, test"]),
    ("tiny_pairs", "train[5:5]", "en", ["no examples"]),
    ("tiny_by_hand", "train", "en", ["cannot prepare tiny_by_hand", "manual"]),
  ],
)
def test_complaints_are_one_short_sentence(data_dir, dataset, split, source, words):
  with pytest.raises(InputError) as caught:
    open_corpus(config(data_dir, dataset, source), split)
  message = str(caught.value)
  assert "\n" not in message
  assert len(message) < 300
  for word in words:
    assert word in message


@pytest.mark.parametrize(
  ("dataset", "folder"),
  [
    ("planted", "planted/1.0.0"),
    ("tiny_pairs:9.9.9", "tiny_pairs/9.9.9"),
    ("tiny_pairs/other", "tiny_pairs/other/1.2.3"),
  ],
)
def test_no_module_is_imported_by_the_name_in_a_file(tmp_path, monkeypatch, dataset, folder):
  """The config of a stranger's run names the dataset and the folder of its files."""
  files = tmp_path / folder
  files.mkdir(parents=True)
  (files / "features.json").write_text('{"pythonClassName": "planted_module.Feature", "jsonFeature": {"json": "{}"}}')
  info = {"name": dataset.partition(":")[0], "version": files.name, "fileFormat": "array_record"}
  (files / "dataset_info.json").write_text(json.dumps(info))
  (tmp_path / "planted_module.py").write_text("raise SystemExit('code was run')\n")
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError, match=r"config\.data\.dataset is"):
    open_corpus(config(str(tmp_path), dataset), "train")


def test_a_dataset_prepared_in_another_format(data_dir, tmp_path):
  open_corpus(config(str(tmp_path)), "train")
  (info,) = tmp_path.glob("tiny_pairs/*/dataset_info.json")
  info.write_text(info.read_text().replace("array_record", "tfrecord"))
  with pytest.raises(InputError, match=r"another format.*set config\.data\.data_dir"):
    open_corpus(config(str(tmp_path)), "train")


def test_datasets_may_be_in_the_home_folder(data_dir, tmp_path, monkeypatch):
  [*open_corpus(config(data_dir), "test")]
  monkeypatch.setenv("HOME", data_dir)
  monkeypatch.chdir(tmp_path)
  assert len([*open_corpus(config("~"), "test")]) == 2 and not [*tmp_path.iterdir()]


def test_a_text_that_is_not_utf_8_is_named(data_dir):
  pairs = module.TfdsPairs("tiny_pairs", "test", "en", "de", data_dir)
  with pytest.raises(InputError, match=r"^the split 'test' of tiny_pairs, example 3: the text is not valid UTF-8$"):
    pairs._text(3, b"caf\xe9")

"""Sentence pairs of TensorFlow Datasets, prepared and read without TensorFlow."""

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from etils import epath

from transformer_jax.data import fingerprint
from transformer_jax.runtime.errors import InputError, RunError, first_line
from transformer_jax.runtime.file_locks import lock

if TYPE_CHECKING:  # it takes seconds to import
  from tensorflow_datasets.core import DatasetBuilder
  from tensorflow_datasets.core.naming import DatasetName
  from tensorflow_datasets.core.splits import SplitInfo, SubSplitInfo

# Examples that are read together, which is faster than one by one.
_CHUNK = 1024


class TfdsPairs:
  """A split of a dataset with two languages, in either direction.

  The dataset is downloaded and prepared first if necessary, as ArrayRecord files,
  which can be read without TensorFlow.

  Args:
    dataset: the TFDS name of the dataset, such as `wmt14_translate/de-en`.
    split: the split, such as `train`, or a part of it, such as `train[:1%]`.
    source_language, target_language: the names of the two text features.
    data_dir: the folder of TFDS' datasets; empty means TFDS' default.

  Raises:
    InputError: there is no such dataset, split or feature, or the user must
      fetch files of the dataset by hand.
    RunError: downloading or preparing failed.
  """

  def __init__(self, dataset: str, split: str, source_language: str, target_language: str, data_dir: str):
    self.name = f"the split {split!r} of {dataset}"
    self._languages = source_language, target_language
    self._builder = _builder(dataset, data_dir)
    _require_text(self._builder, dataset, self._languages)
    with _one_at_a_time(self._builder.data_path.parent):
      self._builder = _builder(dataset, data_dir)  # another process may have prepared the dataset meanwhile
      _prepare(self._builder, dataset)
    self._split = _split(self._builder, dataset, split)

  def __iter__(self) -> Iterator[tuple[str, str]]:
    """Reads all pairs; a line feed inside a sentence becomes a space.

    Raises:
      InputError: a file is missing or damaged, or a text is not UTF-8.
    """
    source, target = self._languages
    builder: Any = self._builder  # the decorators of TFDS hide the parameters from type checkers
    examples = builder.as_data_source(self._split.name)
    for start in range(0, len(examples), _CHUNK):
      numbers = range(start, min(start + _CHUNK, len(examples)))
      try:
        found = examples.__getitems__(numbers)
      except Exception as error:  # of ArrayRecord, of protocol buffers, which have their own, or of TFDS
        raise InputError(
          f"cannot read {self.name}: {first_line(error)}; prepare it again in another config.data.data_dir"
        ) from error
      for number, example in zip(numbers, found, strict=True):
        yield self._text(number, example[source]), self._text(number, example[target])

  def _text(self, number: int, text: bytes | None) -> str:
    if text is None:
      raise InputError(f"{self.name}, example {number}: the text is missing")
    try:
      return text.decode().replace("\n", " ")
    except UnicodeDecodeError as error:
      raise InputError(f"{self.name}, example {number}: the text is not valid UTF-8") from error

  def fingerprint(self) -> str:
    """A digest of the dataset's version, the split's files and the part of them that is read."""
    parts = [
      (fingerprint.of_file(epath.Path(part.filename)), part.skip, part.take) for part in self._split.file_instructions
    ]
    return fingerprint.of_values(self._builder.info.full_name, self._languages, parts)


def _builder(dataset: str, data_dir: str) -> "DatasetBuilder":
  import tensorflow_datasets as tfds
  import tensorflow_datasets.translate  # registers the translation datasets
  from tensorflow_datasets.core.naming import parse_builder_name_kwargs

  folder = os.path.expanduser(data_dir) or None
  try:
    name, options = parse_builder_name_kwargs(dataset, data_dir=folder, file_format="array_record")
    # `tfds.builder` may import the module that a file in `data_dir` names, or ask another hub for `HUB:NAME`.
    return tfds.builder_cls(_without_hub(name))(**options)
  except tfds.core.DatasetNotFoundError as error:
    raise InputError(
      f"config.data.dataset is {dataset!r}, which TensorFlow Datasets does not have: choose one of "
      "https://www.tensorflow.org/datasets/catalog/overview"
    ) from error
  except Exception as error:  # an unknown configuration or version, or a damaged file of its facts
    if "File format is already set" in str(error):
      raise InputError(
        f"{dataset} was prepared in another format than array_record in {data_dir or 'the default folder of TFDS'}: "
        "set config.data.data_dir to another folder"
      ) from error
    raise InputError(f"config.data.dataset is {dataset!r}, which cannot be used: {_brief(error)}") from error


def _without_hub(name: "DatasetName") -> str:
  """The name of a dataset of TFDS itself; raises ValueError for one of another hub."""
  if name.namespace:
    raise ValueError(f"it is of {name.namespace}, and only the datasets of TensorFlow Datasets itself can be read")
  return name.name


def _require_text(builder: "DatasetBuilder", dataset: str, languages: tuple[str, str]) -> None:
  from tensorflow_datasets.core.features import Text

  features: Any = builder.info.features
  texts = [name for name, feature in features.items() if isinstance(feature, Text)]
  for side, language in zip(("source", "target"), languages, strict=True):
    if language not in texts:
      raise InputError(
        f"config.data.{side}_language is {language!r}, which must be a text feature of {dataset}; "
        f"it has {', '.join(texts) or 'none'}"
      )


@contextlib.contextmanager
def _one_at_a_time(folder: epath.Path) -> Iterator[None]:
  """Lets one process at a time prepare the dataset of a folder, as TFDS has no locks; in a bucket there are none."""
  with contextlib.ExitStack() as stack:
    with contextlib.suppress(OSError):  # a folder that is prepared may be read-only
      if "://" not in os.fspath(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock(stack.enter_context(open(folder / ".lock", "a")))
    yield


def _prepare(builder: "DatasetBuilder", dataset: str) -> None:
  """Downloads and prepares the dataset if it is not yet on disk."""
  try:
    with extraction_without_tensorflow():
      builder.download_and_prepare()
  except AssertionError as error:  # some files must be fetched by hand; the message says which
    raise InputError(f"cannot prepare {dataset}: {_brief(error)}") from error
  except Exception as error:
    if "No module named 'tensorflow'" in str(error):
      raise InputError(
        f"this version of TensorFlow Datasets cannot prepare {dataset} without TensorFlow: "
        "`pip install tensorflow-cpu` once to prepare it; it is not needed afterwards"
      ) from error
    raise RunError(f"cannot prepare {dataset}: {_brief(error)}; give the same command again to continue") from error


def _split(builder: "DatasetBuilder", dataset: str, split: str) -> "SplitInfo | SubSplitInfo":
  """TFDS' description of the split, which has its files."""
  splits = builder.info.splits
  try:
    if splits[split].num_examples:
      return splits[split]
    problem = "it has no examples"
  except (KeyError, ValueError) as error:
    problem = _brief(error)
  raise InputError(f"the split {split!r} of {dataset} cannot be used: {problem}; its splits are {', '.join(splits)}")


@contextlib.contextmanager
def extraction_without_tensorflow() -> Iterator[None]:
  """Lets TFDS unpack archives if TensorFlow is not installed.

  To prepare a translation dataset, only TFDS' extractor calls TensorFlow, and
  only two functions of it. These two replace TensorFlow in the extractor's
  module. That module is private to TFDS: if another version has no such module,
  nothing is replaced and TFDS itself reports that TensorFlow is missing.
  """
  from tensorflow_datasets.core.download import extractor

  if importlib.util.find_spec("tensorflow") or not hasattr(extractor, "tf"):
    yield
    return
  tensorflow = extractor.tf
  extractor.tf = SimpleNamespace(
    io=SimpleNamespace(gfile=SimpleNamespace(GFile=lambda path, mode: epath.Path(path).open(mode))),
    compat=SimpleNamespace(as_text=os.fsdecode),
  )
  try:
    yield
  finally:
    extractor.tf = tensorflow


def _brief(error: Exception) -> str:
  """TFDS' error message, without the call before it and the long lists after it."""
  text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip()
  text = re.sub(r'^Failed to construct dataset .*?\}": ', "", text)
  return text.partition("\n")[0].partition(" Here are ")[0].rstrip(".: ") or type(error).__name__

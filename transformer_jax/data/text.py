"""Sentence pairs in UTF-8 text files with one sentence per line; line i of one file is the translation of line i of
the other."""

import codecs
import errno
import gzip
import hashlib
import lzma
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from etils import epath

from transformer_jax.data import fingerprint, xz
from transformer_jax.runtime.errors import InputError, first_line
from transformer_jax.runtime.files import open_buffered, path_of
from transformer_jax.runtime.wording import counted

_READERS = {".gz": gzip.open, ".xz": xz.reader}
COMPRESSED = tuple(_READERS)  # the endings of names
# The most bytes of a line, its end included. A longer line is not text and may not fit into memory.
LONGEST_LINE = 1 << 24


@dataclass(frozen=True)
class TextFiles:
  """A parallel corpus in two files.

  Attributes:
    source, target: the files.
    weight: how often each pair is read.
  """

  source: epath.Path
  target: epath.Path
  weight: float

  @property
  def compressed(self) -> bool:
    """Whether a file can be read only from its beginning."""
    return self.source.suffix in _READERS or self.target.suffix in _READERS


class TextPairs:
  """The pairs of one or several parallel corpora, one corpus after another.

  Args:
    which: corpora separated by `;`, each `PREFIX` or `SOURCE,TARGET` with an
      optional `*WEIGHT`. `PREFIX` means the files `PREFIX.en` and `PREFIX.de`
      (the languages are the endings), each plain or compressed (`.gz`, `.xz`).
    source_language, target_language: the endings of the files.

  Attributes:
    files: the corpora.

  Raises:
    InputError: a file is missing or may not be read, or a weight is not a positive number.
  """

  def __init__(self, which: str, source_language: str, target_language: str):
    self.name = which
    self.files = [_parse(part.strip(), which, (source_language, target_language)) for part in which.split(";")]

  def __iter__(self) -> Iterator[tuple[str, str]]:
    """Reads all pairs.

    Raises:
      InputError: two files differ in their number of lines or have none, a
        line is not UTF-8, or a file cannot be read; all earlier pairs were
        yielded.
    """
    for files in self.files:
      pairs = zip_lines(lines_of(files.source), lines_of(files.target), str(files.source), str(files.target))
      yield from repeated(pairs, files.weight)

  def require_no_pipe(self) -> None:
    """Raises InputError if a file is a pipe, for a program that reads the pairs more than once."""
    require_no_pipe(path for files in self.files for path in (files.source, files.target))

  def stamps(self) -> list[tuple[int, float]]:
    """The size and the time of the last change of each file."""
    found = []
    for path in (path for files in self.files for path in (files.source, files.target)):
      with readable(path):
        stat = path.stat()
        found.append((stat.length, stat.mtime if "://" in os.fspath(path) else os.stat(path).st_mtime_ns))
    return found

  def fingerprint(self, of_file: Callable[[epath.Path], str] | None = None) -> str:
    """A digest of the files' bytes on disk, each by `of_file` or `digest`, and of the weights."""
    of_file = of_file or digest
    return fingerprint.of_values([(of_file(files.source), of_file(files.target), files.weight) for files in self.files])


def read_lines(readline: Callable[[int], bytes], name: str, first: int = 1) -> Iterator[str]:
  """The lines of a UTF-8 text, without their ends.

  A line ends with a line feed; the last line needs none. A carriage return
  before the line feed and a byte order mark at the start of the text are left
  out. Every other character is text, even if `str.splitlines` takes it for a
  line end.

  Args:
    readline: the method of a binary file, which gives the next line, or as many bytes of it as it is asked for.
    name: the name of the file in messages.
    first: the number of the first line that `readline` gives.

  Raises:
    InputError: a line is not UTF-8, or longer than 16 MiB; all earlier ones were yielded.
  """
  for number, line in enumerate(iter(lambda: readline(LONGEST_LINE + 1), b""), first):
    if len(line) > LONGEST_LINE:
      raise InputError(f"{name}, line {number} has more than {LONGEST_LINE:,} bytes: is it text, a sentence per line?")
    if number == 1:
      line = line.removeprefix(codecs.BOM_UTF8)
      if not line:
        return
    try:
      text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
      raise InputError(
        f"{name}, line {number}: byte {error.start + 1} of the line is not valid UTF-8; convert the file to UTF-8"
      ) from error
    yield text


def zip_lines(
  sources: Iterator[str], targets: Iterator[str], source_name: str, target_name: str
) -> Iterator[tuple[str, str]]:
  """Line i of one text with line i of the other.

  Raises:
    InputError: one side has more lines, or both have none; all earlier pairs
      were yielded.
  """
  count = 0
  for source, target in zip_longest(sources, targets):
    if source is None or target is None:
      longer = count + 1 + sum(1 for _ in (targets if source is None else sources))
      raise unequal(*((count, longer) if source is None else (longer, count)), source_name, target_name)
    count += 1
    yield source, target
  if not count:
    raise without_lines(source_name, target_name)


def without_lines(source_name: str, target_name: str) -> InputError:
  """The error for two texts without lines."""
  return InputError(f"{source_name} and {target_name} are empty: expected one sentence per line")


def unequal(sources: int, targets: int, source_name: str, target_name: str) -> InputError:
  """The error of two texts with different numbers of lines."""
  return InputError(
    f"{source_name} has {counted(sources, 'lines')} but {target_name} has {targets:,}: "
    "line i of one must be the translation of line i of the other"
  )


def repeated(pairs: Iterable[tuple[str, str]], weight: float, first: int = 0) -> Iterator[tuple[str, str]]:
  """Each pair floor(weight) times, and a share weight - floor(weight) of the pairs once more.

  A hash of a pair's number decides whether it comes once more, so the pairs are
  the same in every epoch and every process. `first` is the number of the first pair.
  """
  times, share = int(weight), weight % 1
  for i, pair in enumerate(pairs, first):
    for _ in range(times + (share > 0 and _uniform(i) < share)):
      yield pair


def count_repeated(count: int, weight: float, first: int) -> int:
  """The number of pairs that `repeated` makes of `count` pairs from number `first`."""
  times, share = int(weight), weight % 1
  return count * times + (sum(_uniform(i) < share for i in range(first, first + count)) if share else 0)


def _uniform(i: int) -> float:
  """A pseudo-random number in [0, 1)."""
  digest = hashlib.blake2b(i.to_bytes(8, "little"), digest_size=4).digest()
  return int.from_bytes(digest, "little") / 2**32


def _parse(part: str, which: str, languages: tuple[str, str]) -> TextFiles:
  """Parses `PREFIX` or `SOURCE,TARGET`, either with an optional `*WEIGHT`."""
  paths, star, text = part.rpartition("*")
  if not star:
    paths, text = part, "1"
  try:
    weight = float(text)
  except ValueError:
    weight = math.nan
  if not 0 < weight < math.inf:
    raise InputError(f"the weight {text!r} in {which!r} is not a positive number: write PREFIX*2 or PREFIX*0.5")
  names = [name.strip() for name in paths.split(",")]
  if len(names) == 1 and names[0]:
    source, target = _files_of_prefix(names[0], languages)
  elif len(names) == 2 and all(names):
    source, target = map(existing, names)
  else:
    raise InputError(f"{part!r} in {which!r} is not a corpus: write PREFIX or SOURCE,TARGET, and ';' between corpora")
  return TextFiles(source, target, weight)


def _files_of_prefix(name: str, languages: tuple[str, str]) -> tuple[epath.Path, epath.Path]:
  """The two files of a corpus; InputError if there is one missing, also if `name` is that of the other."""
  source, target = (f"{name}.{language}" for language in languages)
  try:
    return _file_of_prefix(source), _file_of_prefix(target)
  except InputError as error:
    prefix, _, ending = name.rpartition(".")
    path = path_of(name)
    with readable(path):
      is_one = bool(prefix) and ending in languages and path.is_file()
    if not is_one:
      raise
    files = " and ".join(f"{prefix}.{language}" for language in languages)
    raise InputError(f"{name} is one file, but a corpus has two: give {prefix}, which stands for {files}") from error


def _file_of_prefix(name: str) -> epath.Path:
  """The file of that name, plain or compressed; there must be exactly one."""
  path = path_of(name)
  with readable(path):
    found = [file for ending in ("", *_READERS) if _is_there(file := path.with_name(path.name + ending))]
  if not found:
    raise InputError(f"{path} does not exist, nor {path.name}.gz or {path.name}.xz beside it: check the path")
  if len(found) > 1:
    raise InputError(f"{' and '.join(map(str, found))} both exist: remove one, or name the two files as SOURCE,TARGET")
  return existing(found[0])


def existing(name: str | os.PathLike) -> epath.Path:
  """The path of a file; InputError if the file does not exist or may not be read."""
  path = path_of(name)
  with readable(path):
    if not _is_there(path):
      raise InputError(f"{path} does not exist: check the path")
    if not is_pipe(path):  # whose writer takes its closing for the end
      path.open("rb").close()
  return path


def _is_there(path: epath.Path) -> bool:
  """Whether there is such a file; OSError where its folder does not let us look, so that nothing is known."""
  if "://" in os.fspath(path):
    return path.exists()
  try:
    os.stat(path)
  except (FileNotFoundError, NotADirectoryError, ValueError):  # the last for a name with NUL
    return False
  except OSError as error:
    if error.errno != errno.ENAMETOOLONG:  # no file has such a name; one without .gz may be there
      raise
    return False
  return True


def is_pipe(path: epath.Path) -> bool:
  """Whether a path is a pipe, whose text can be read only once."""
  return "://" not in os.fspath(path) and stat.S_ISFIFO(os.stat(path).st_mode)


def require_no_pipe(paths: Iterable[epath.Path]) -> None:
  """Raises InputError if one of the files is a pipe, for a program that reads them more than once."""
  for path in filter(is_pipe, paths):
    raise InputError(f"{path} is a pipe, whose text can be read only once: write it to a file")


def lines_of(name: str | os.PathLike, first: int = 1, start: int = 0) -> Iterator[str]:
  """The lines of a file, plain or compressed, by `read_lines`; InputError if the file cannot be read.

  Args:
    name: the file.
    first: the number of the first line that is read.
    start: the byte at which that line begins in a file that is not compressed.
  """
  path = path_of(name)
  with readable(path), open_buffered(path) as file:
    reader = _READERS.get(path.suffix)
    if start:
      file.seek(start)
    stream = reader(file) if reader else file
    yield from read_lines(stream.readline, str(path), first)


def digest(name: str | os.PathLike) -> str:
  """A digest of a file's bytes; InputError if the file cannot be read."""
  path = path_of(name)
  with readable(path):
    return fingerprint.of_file(path)


@contextmanager
def readable(path: epath.Path) -> Iterator[None]:
  """Turns what goes wrong when a file is read in the body into an InputError that names it."""
  try:
    yield
  except ImportError as error:
    raise InputError(
      f"cannot read {path}: for gs:// install etils[epath-gcs] and log in, or use a local path"
    ) from error
  except FileNotFoundError as error:
    raise InputError(f"{path} does not exist: check the path") from error
  except IsADirectoryError as error:
    raise InputError(f"{path} is a folder: give a file") from error
  except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    raise InputError(f"cannot read {path}: {reason}; check that the file is whole and may be read") from error
  except InputError:
    raise
  except Exception as error:  # each kind of storage has errors of its own
    if "://" not in os.fspath(path):
      raise
    raise InputError(f"cannot read {path}: {first_line(error)}; log in, or use a local path") from error

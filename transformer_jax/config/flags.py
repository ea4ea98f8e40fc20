"""The flags of an experiment: `--config=FILE[:ARGUMENT]` names a config file, `--config.KEY=VALUE` changes a key."""

import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from transformer_jax.config import Config, serialization
from transformer_jax.runtime.errors import InputError, one_line
from transformer_jax.runtime.files import expanded, same_file
from transformer_jax.runtime.values import Json, JsonObject
from transformer_jax.runtime.wording import nearest

DEFAULT = "numbers.py"  # the file of the package that is read without --config

_OF_RUN = "config.json"  # the config of a run folder
_PACKAGE = Path(__file__).resolve().parents[1]
_running: list[ModuleType] = []  # the packages `configs` of the config files that are being run


def read_keys(arguments: Sequence[str]) -> JsonObject:
  """The keys and values that `--config.KEY=VALUE` or `--config.KEY VALUE` set.

  A boolean key needs no value: `--config.debug` is `--config.debug=true`.

  Raises:
    InputError: an unknown key, or a value of the wrong type.
  """
  values, rest = {}, list(arguments)
  while rest:
    flag, equals, text = rest.pop(0).partition("=")
    key = flag.removeprefix("--config.")
    if key == flag:
      raise InputError(f"{flag!r} is not a flag: flags begin with --, as in --config.train.steps=1000")
    kind = serialization.type_of(key)
    if not equals:
      alone = not rest or rest[0].startswith("--")
      if alone and not serialization.may_be(kind, bool):
        raise InputError(f"config.{key} has no value: write {flag}=VALUE")
      text = "true" if alone else rest.pop(0)
    values[key] = serialization.from_text(text, kind, key)
  return values


def read_config(given: str | None, keys: Mapping[str, Json]) -> Config:
  """The config of a file, with some keys changed.

  Args:
    given: the value of --config: a file, or the name of a file of the package, with an optional argument after a colon;
      None means the first example.
    keys: the result of `read_keys`.

  Raises:
    InputError: there is no such file, it raises an error, it returns no Config, or the Config does not have the keys.
  """
  arguments, file = (given or "").split(":", 1)[1:], None
  try:
    file = find_file(given)
    with _importable(file) as module:
      assert module.__spec__ is not None and module.__spec__.loader is not None
      module.__spec__.loader.exec_module(module)
      config = module.get_config(*arguments)
    if not isinstance(config, Config):
      raise InputError("get_config() must give a Config of transformer_jax.config")
    config = serialization.validated(config)
  except InputError as error:
    raise InputError(f"--config={given}: {error}") from error
  except (Exception, SystemExit) as error:  # a config file can fail in any way
    reason = one_line(error, 300)
    line = _line_of(error, file)
    where = "" if line is None else f" in line {line}"
    raise InputError(f"--config={given}: the file fails{where} with {type(error).__name__}: {reason}") from error
  return serialization.changed(config, keys)


def _line_of(error: BaseException, file: Path | None) -> int | None:
  """The number of the file's line that was running when an error was raised; None if none was."""
  frames = traceback.extract_tb(error.__traceback__)
  return next((frame.lineno for frame in reversed(frames) if file and same_file(frame.filename, file)), None)


def find_file(given: str | None) -> Path:
  """The path of the file that --config names: a path, or `NAME`, `NAME.py` or `configs/NAME.py` of the package.

  Raises:
    InputError: there is no such file, or it is a run's; the message has the nearest names.
  """
  if given is None:
    return shipped_folder() / DEFAULT
  name = given.partition(":")[0]
  path = expanded(name)
  if path.is_file() and path.name != _OF_RUN:
    return path
  shipped = {file.stem: file for file in sorted(shipped_folder().glob("*.py"))}
  if path.parent in (Path(), Path("configs")) and path.suffix in ("", ".py") and path.stem in shipped:
    return shipped[path.stem]
  if path.name == _OF_RUN or (path / _OF_RUN).is_file():
    raise InputError("it is a run's, and --workdir alone resumes a run: give a config file in Python")
  if path.exists() and not path.is_dir():
    raise InputError(f"{name} is no file but a pipe or a device: write the config to a file")
  raise InputError(
    f"there is no file {name}, and none of that name comes with transformer_jax{nearest(path.stem, shipped)}, "
    f"which has {', '.join(shipped)}"
  )


def shipped_folder() -> Path:
  """The folder of the package's config files: inside an installed package, beside it in a checkout."""
  installed = _PACKAGE / "configs"
  return installed if installed.is_dir() else _PACKAGE.parent / "configs"


def run_name(given: str | None) -> str:
  """The name of a run, made of the config file and its argument, such as `table3-B-dk16`."""
  name, _, argument = (given or DEFAULT).partition(":")
  return re.sub(r"[^\w.]+", "-", f"{Path(name).stem}-{argument}").strip("-")


class _Source(SourceFileLoader):
  """Compiles the file itself: bytecode beside it may be older, or of another program."""

  def get_code(self, fullname: str) -> CodeType:
    return self.source_to_code(self.get_data(self.path), self.path)


@contextmanager
def _importable(file: Path) -> Iterator[ModuleType]:
  """The module of a config file, not yet run; in the body `configs.NAME` is a file of its folder or of the package."""
  before = _modules_of_configs()
  for name in before:
    del sys.modules[name]
  package = ModuleType("configs")
  package.__path__ = [str(file.resolve().parent), str(shipped_folder())]
  sys.modules["configs"] = package
  name = f"configs.{file.stem}"
  spec = spec_from_file_location(name, file, loader=_Source(name, str(file)))
  assert spec is not None
  _running.append(package)
  try:
    yield sys.modules.setdefault(name, module_from_spec(spec))
  finally:
    _running.remove(package)
    # The modules stay importable, unless they are in the place of a package `configs` of the program, which has a spec,
    # or of that of another config file, which has read this one.
    replaced = before.get("configs")
    if getattr(replaced, "__spec__", None) or replaced in _running:
      for name in _modules_of_configs():
        del sys.modules[name]
      sys.modules.update(before)


def _modules_of_configs() -> dict[str, ModuleType]:
  return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "configs"}

"""Conversion of a config to JSON values and to keys of the command line, and back, with every value checked."""

import dataclasses
import enum
import functools
import json
import reprlib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.model.config import AnyModelConfig
from transformer_jax.runtime.errors import PROGRAM, InputError
from transformer_jax.runtime.values import Json, JsonObject
from transformer_jax.runtime.wording import nearest

Hint = Any  # a type, as `typing.get_type_hints` gives it

_short = reprlib.Repr()  # shortens a value of any size and depth
_short.maxstring = _short.maxother = 80

# Of a whole number with its sign; JSON files with longer ones are refused when they are read (`runtime/untrusted.py`).
_MOST_DIGITS = 19
_FAMILY = "family"  # the key of the model's family; it is only in JSON, not on the command line


def type_of(key: str, config: Config | None = None) -> Hint:
  """The type of a key such as `model.num_layers` in this config; without one, in the config of any model family.

  Raises:
    InputError: there is no such key; the message names the nearest ones.
  """
  known: Hint = Config
  seen = "config"
  for name in key.split("."):
    hints = _hints(known)
    if name not in hints:
      every = [*_keys(Config)]
      of_another = key in every  # family, so that the keys of this one are listed
      raise _unknown(seen, name, hints, "" if of_another else nearest(key, every))
    known, seen = hints[name], f"{seen}.{name}"
    if known is AnyModelConfig and config:
      known = type(config.model)
  if _hints(known):
    raise InputError(f"{seen} is a group of keys: set one of {', '.join(sorted(_hints(known)))}")
  return known


def from_text(text: str, hint: Hint, key: str) -> Any:
  """The value of a key of this type, converted from the text on the command line.

  Raises:
    InputError: the text cannot be converted to the type.
  """
  if str not in _kinds(hint):
    words: JsonObject = {"true": True, "false": False, "none": None, "null": None}
    for read in (lambda text: words[text.lower()], int, float):
      try:
        value = read(text)
      except (KeyError, ValueError):
        continue
      if type(value) in _kinds(hint) or (type(value) is int and float in _kinds(hint)):
        return _convert(hint, value, f"config.{key}")
  return _convert(hint, text, f"config.{key}")


def changed(config: Config, values: Mapping[str, Json]) -> Config:
  """The config with some keys changed, such as `model.num_layers`; every check runs again.

  Raises:
    InputError: the config's model has no such key, or a check fails.
  """
  tree = to_dict(config)
  for key, value in values.items():
    hint = type_of(key, config)
    if isinstance(value, str):  # perhaps of a command line, where the family was not known yet
      value = from_text(value, hint, key)
    *groups, name = key.split(".")
    group = tree
    for part in groups:
      group = group[part]
    group[name] = _plain(value)
  return from_dict(tree)


def _hints(known: Hint) -> dict[str, Hint]:
  """The names and types of the keys of a group."""
  if known is AnyModelConfig:
    found: dict[str, Hint] = {}
    for family in registry.names():
      for key, hint in _hints(registry.sizes(family)).items():  # two families may have a key of one name
        found[key] = found[key] | hint if key in found and found[key] != hint else hint
    return found
  if not dataclasses.is_dataclass(known):
    return {}
  hints = typing.get_type_hints(known)
  return {f.name: hints[f.name] for f in dataclasses.fields(known)}


def _keys(known: Hint, prefix: str = "") -> Iterator[str]:
  """All keys of a group and of the groups in it."""
  for name, hint in _hints(known).items():
    yield from _keys(hint, f"{prefix}{name}.") if _hints(hint) else [f"{prefix}{name}"]


def _unknown(path: str, name: str, known: dict[str, Hint], meant: str) -> InputError:
  key = f"{path}.{name}" if name.isidentifier() and len(name) < 80 else _short.repr(name)
  all_keys = f"`{PROGRAM} train --help` shows all" if meant else f"{path} has {', '.join(sorted(known)) or 'none'}"
  return InputError(f"{key} is not a key{meant}; {all_keys}")


def validated(config: Config) -> Config:
  """The same config, rebuilt, so that every check runs on its present values.

  Raises:
    InputError: a check fails, or something was set that is no key.
  """
  rebuilt = from_dict(to_dict(config))
  _require_keys_alone(config, rebuilt, "config")
  return rebuilt


def _require_keys_alone(given: Any, rebuilt: Any, path: str) -> None:
  """Raises InputError if something was set in a group that is no key."""
  known = getattr(rebuilt, "__dict__", {})  # with slots there is none
  for name in getattr(given, "__dict__", {}):
    cached = isinstance(getattr(type(given), name, None), functools.cached_property)  # which keeps its value there
    if name not in known and not cached:
      hints = _hints(type(given))
      raise _unknown(path, name, hints, nearest(name, hints))
  for field in dataclasses.fields(given):
    if dataclasses.is_dataclass(value := getattr(given, field.name)):
      _require_keys_alone(value, getattr(rebuilt, field.name), f"{path}.{field.name}")


def to_dict(config: Any) -> JsonObject:
  """The config as JSON values; an enum becomes its value."""
  family = {_FAMILY: registry.name_of(config)} if isinstance(config, AnyModelConfig) else {}
  return family | {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def _plain(value: Any) -> Json:
  if dataclasses.is_dataclass(value):
    return to_dict(value)
  if isinstance(value, tuple):
    return tuple(map(_plain, value))
  return value.value if isinstance(value, enum.Enum) else value


def flat(config: Config) -> JsonObject:
  """The keys in the form of the command line, such as `model.num_layers`, with their JSON values."""
  from flax.traverse_util import flatten_dict  # --help must not wait for this import

  return {key: value for key, value in flatten_dict(to_dict(config), sep=".").items() if key != f"model.{_FAMILY}"}


def from_dict(values: JsonObject) -> Config:
  """The inverse of `to_dict`.

  Raises:
    InputError: an unknown key or a value of the wrong type; the message names it.
  """
  return _build(Config, values, "config")


def to_json(config: Config) -> str:
  return json.dumps(to_dict(config), indent=2) + "\n"


def _build(cls: type, values: Json, path: str) -> Any:
  if not isinstance(values, dict):
    raise InputError(f"{path} is {_short.repr(values)}, but must be a group of keys")
  hints = _hints(cls)
  for name in values:
    if name not in hints:
      raise _unknown(path, name, hints, nearest(name, hints))
  return cls(**{name: _convert(hints[name], value, f"{path}.{name}") for name, value in values.items()})


def _convert(hint: Hint, value: Json, path: str) -> Any:
  """`value` converted to the type `hint`.

  Raises:
    InputError: the conversion would lose something.
  """
  if hint is AnyModelConfig and isinstance(value, dict):
    # A run folder written before there were families is of the first family.
    hint = registry.config_class(value.get(_FAMILY, registry.FIRST))
    value = {key: inner for key, inner in value.items() if key != _FAMILY}
  if dataclasses.is_dataclass(hint) or hint is AnyModelConfig:
    return _build(typing.cast(type, hint), value, path)
  for kind in sorted(_kinds(hint), key=lambda kind: kind is not type(value)):  # 5 is an int where a float may be, too
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and value in [member.value for member in kind]:
      return kind(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):  # np.float64, too
      with suppress(OverflowError):
        return float(value)
    if tuple in (kind, typing.get_origin(kind)) and isinstance(value, list | tuple):
      return _tuple(kind, value, path)
    if type(value) is kind:
      _require_range(value, path)
      return value
  raise InputError(f"{path} is {_short.repr(value)}, but must be {describe_type(hint)}")


def _tuple(kind: Hint, values: Sequence[Json], path: str) -> tuple:
  """A tuple, which JSON has as a list; its elements are checked, too."""
  kinds = typing.get_args(kind) or tuple(tuple if isinstance(value, list) else type(value) for value in values)
  kinds = kinds[:1] * len(values) if kinds[1:] == (...,) else kinds
  if len(kinds) != len(values):
    raise InputError(f"{path} is {_short.repr(values)}, but must have {len(kinds)} elements")
  found = zip(kinds, values, strict=True)
  return tuple(_convert(each, value, f"{path}[{i}]") for i, (each, value) in enumerate(found))


def _require_range(value: Json, path: str) -> None:
  """Raises InputError for a whole number that is too long: no JSON file with it would be read again."""
  if type(value) is int and not -(10 ** (_MOST_DIGITS - 1)) < value < 10**_MOST_DIGITS:
    raise InputError(f"{path} is {_short.repr(value)}, but must have at most {_MOST_DIGITS} digits")


def describe_type(hint: Hint) -> str:
  """The type of a key in words, such as `int or none` or `one of numbers, text, tfds`."""
  return " or ".join(
    "one of " + ", ".join(member.value for member in kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum)
    else getattr(kind, "__name__", str(kind)).replace("NoneType", "none")
    for kind in _kinds(hint)
  )


def may_be(hint: Hint, kind: type) -> bool:
  """Whether a value of this type fits."""
  return kind in _kinds(hint)


def _kinds(hint: Hint) -> tuple[Hint, ...]:
  """The members of a union; for any other type, the type itself."""
  return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)

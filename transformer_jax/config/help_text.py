"""The part of --help about the keys of a config; their descriptions come from the docstrings of the dataclasses."""

import dataclasses
import enum
import inspect
import re
import shlex
import textwrap
import typing
from collections.abc import Iterator
from typing import Any

from transformer_jax.config import Config, serialization
from transformer_jax.runtime.errors import one_line

_WIDTH = 80


def help_text(config: Config) -> str:
  """Each key with its value in this config, its description, type and default."""
  lines = []
  for group in dataclasses.fields(config):
    value = getattr(config, group.name)
    if dataclasses.is_dataclass(value):
      summary = inspect.cleandoc(type(value).__doc__ or "").partition("\n\n")[0]
      title = f"config.{group.name}: {' '.join(summary.split())}"
      lines += ["", *textwrap.wrap(title, _WIDTH), *_keys(value, f"--config.{group.name}.")]
  return "\n".join([*lines, "", "config:", *_keys(config, "--config.")])


def descriptions(cls: type) -> dict[str, str]:
  """The description of each field, from the section `Attributes:` of the docstrings of the dataclass and its bases."""
  found: dict[str, str] = {}
  for base in reversed(cls.__mro__):
    _, _, section = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
    for names, text in re.findall(r"^  (\w[\w, ]*): (.*(?:\n {4,}.*)*)", section, re.MULTILINE):
      found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
  return found


def _keys(group: Any, prefix: str) -> Iterator[str]:
  """The lines about the keys of one dataclass; a field that is itself a dataclass is left out."""
  meanings, kinds = descriptions(type(group)), typing.get_type_hints(type(group))
  indent = " " * 6
  for field in dataclasses.fields(group):
    value = getattr(group, field.name)
    if dataclasses.is_dataclass(value):
      continue
    yield f"  {prefix}{field.name}={_shown(value)}"
    kind = serialization.describe_type(kinds[field.name])
    text = f"{meanings.get(field.name, '')} [{kind}; default {_shown(field.default)}]"
    yield from textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _shown(value: Any) -> str:
  """A value in the form of the command line."""
  match value:
    case enum.Enum():
      return value.value
    case bool() | None:
      return str(value).lower()
    case _:
      return shlex.quote(one_line(value))

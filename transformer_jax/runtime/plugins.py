"""Extensions of this package by other installed packages, through entry points; and libraries that may be missing.

A name in a config or a run folder may come from an untrusted source. It can only choose among the entry points of
installed packages; no other module is imported.
"""

from importlib import import_module, metadata
from typing import Any

from transformer_jax.runtime.errors import InputError, first_line


def library(name: str, message: str) -> Any:
  """A library of an extra, such as `transformer_jax[pictures]`.

  Raises:
    InputError: it is not installed; this is the message.
  """
  try:
    return import_module(name)
  except ModuleNotFoundError as error:
    if error.name != name:
      raise
    raise InputError(message) from error


def names(group: str) -> list[str]:
  """The names of the entry points of a group, over all installed packages."""
  return sorted({point.name for point in metadata.entry_points(group=group)})


def load(group: str, name: str) -> object | None:
  """The object of the entry point with this name; None if no installed package has one.

  Raises:
    InputError: the package cannot be imported.
  """
  for point in metadata.entry_points(group=group, name=name):
    try:
      return point.load()
    except Exception as error:  # another package's code can fail in any way
      package = point.dist.name if point.dist else "a package"
      raise InputError(
        f"{package} is installed and adds {name!r} to {group}, but {point.value} cannot be imported "
        f"({type(error).__name__}: {first_line(error)}): mend or uninstall it"
      ) from error
  return None

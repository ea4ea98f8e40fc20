"""What other installed packages add to this one, by entry points.

A name in a config or in a run folder can be a stranger's. It chooses among the packages that are installed, and makes
Python import nothing else.
"""

from importlib import metadata

from transformer_jax.runtime.errors import InputError, first_line


def names(group: str) -> list[str]:
  """The names that installed packages have in an entry point group."""
  return sorted({point.name for point in metadata.entry_points(group=group)})


def load(group: str, name: str) -> object | None:
  """What an installed package gives this name in an entry point group; None where no package has it.

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

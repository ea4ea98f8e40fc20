"""The settings of another library's JSON file, each with its type checked."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.values import Json


class Settings:
  """The values of a JSON object.

  Args:
    path: the file, for messages.
    values: the object.
  """

  def __init__(self, path: str, values: Mapping[str, Json]):
    self.path, self._values = path, values

  def __contains__(self, name: str) -> bool:
    return self._values.get(name) is not None

  def all(self) -> Mapping[str, Json]:
    """All values by their names."""
    return self._values

  def integer(self, name: str, default: int | None = None, least: int = 0, most: int = (1 << 31) - 1) -> int:
    """A whole number; a missing one is the default, if there is one."""
    value = self.value(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
      raise self.wrong(name, f"a whole number from {least} to {most}")
    return value

  def number(self, name: str, default: float) -> float:
    """A finite number; a missing one is the default."""
    value = self.value(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
      raise self.wrong(name, "a number")
    return float(value)

  def truth(self, name: str, default: bool | None = None) -> bool:
    """True or false."""
    value = self.value(name, default)
    if not isinstance(value, bool):
      raise self.wrong(name, "true or false")
    return value

  def text(self, name: str, default: str | None = None) -> str:
    """A text."""
    value = self.value(name, default)
    if not isinstance(value, str):
      raise self.wrong(name, "a text")
    return value

  def token(self, name: str, default: str) -> str:
    """A special token, which is a text, or an object with one."""
    value = self.value(name, default)
    return Settings(self.path, value).text("content") if isinstance(value, dict) else self.text(name, default)

  def value(self, name: str, default: Any = None) -> Any:
    """A value of any type; null counts as missing."""
    value = self._values.get(name)
    return default if value is None else value

  def require(self, name: str, only: Iterable[Json], why: str = "the model here has nothing else") -> None:
    """Checks that a setting is missing, null, or one of `only`.

    Raises:
      InputError: it is something else.
    """
    value = self._values.get(name)
    if value is not None and not any(type(value) is type(each) and value == each for each in only):
      known = " or ".join(f"{each!r:.80}" for each in only)  # some are of another file, and may have any length
      raise self.wrong(name, f"{known or 'left out'}: {why}")

  def wrong(self, name: str, expected: str) -> InputError:
    """The error for a setting."""
    value = self._values.get(name)
    found = f"{value!a:.80}" if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return InputError(f"{self.path}: {name} is {'missing' if value is None else found}, but must be {expected}")

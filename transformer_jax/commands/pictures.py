"""Messages of the commands that draw pictures."""

from transformer_jax.runtime import plugins


def require_matplotlib(more: str = "") -> None:
  """Raises InputError if matplotlib is not installed; `more` is the end of its message."""
  plugins.library("matplotlib", f"the pictures need matplotlib: pip install 'transformer_jax[pictures]'{more}")


def warn_of_missing_characters(more: str = "") -> None:
  """Says that the fonts of this machine lack characters of a picture."""
  from transformer_jax.runtime.progress import say

  say(f"the fonts of this machine lack some characters, which are boxes in the pictures: install Noto Sans CJK{more}")

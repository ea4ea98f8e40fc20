"""The warnings of commands about the lines and sentences that they translate."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from transformer_jax.decoding.line_warning import LineWarning
  from transformer_jax.runs.run import Run


@contextmanager
def said() -> "Iterator[Callable[[LineWarning], None]]":
  """Gives the function that says warnings. Of lines that tell no language it says the first, and at the end how many
  there were: a file of thousands has them for one reason.
  """
  from transformer_jax.decoding.line_warning import LanguageWarning
  from transformer_jax.runtime.progress import say
  from transformer_jax.runtime.wording import counted

  lines: list[int] = []

  def warn(warning: "LineWarning") -> None:
    if isinstance(warning, LanguageWarning):
      lines.append(warning.line)
      if len(lines) > 1:
        return
    say(warning)

  try:
    yield warn
  finally:
    if len(lines) > 1:
      known = "no tag or code of a language of this run"
      say(f"{counted(len(lines), 'lines')}, the last of which is line {lines[-1]}, begin with {known}")


def warn_of_language(run: "Run", sentence: str) -> None:
  """Says that the sentence of --sentence tells no language, if the run's model needs to be told one."""
  from transformer_jax.data.tagged import tags_of
  from transformer_jax.decoding.line_warning import check_language
  from transformer_jax.runtime.progress import say

  if run.config.model.translates:
    tokenizer = run.tokenizer.source
    check_language(sentence, tokenizer, tags_of(run.config.data), 1, lambda warning: say(f"--sentence {warning.what}"))

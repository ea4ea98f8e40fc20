"""The statements as text, JSON values and Markdown."""

import dataclasses
from collections.abc import Sequence

from transformer_jax.paper.markdown import table
from transformer_jax.paper.statement import Statement
from transformer_jax.runtime.values import JsonObject

_HEAD = """\
# The paper, statement by statement

This page lists what the paper says, in our words, and where the code does it. `transformer-jax fidelity` runs a check
of each statement. `transformer-jax fidelity --markdown` prints this page. Files in the column "code" are in
`transformer_jax/`. The test in the last column tests the same code in more cases. `pytest -m "not slow" TEST` runs all
of them but those that take minutes. What is in parentheses is not in the paper: it follows from its words, or says what
they leave open.
"""


def text(statement: Statement, reason: str | None) -> str:
  """Lines for a terminal; `reason` is why the check failed, or None."""
  lines = [
    f"{'pass' if reason is None else 'FAIL'}  §{statement.section}  {statement.says}",
    f"      code: {statement.code}",
    f"      test: {statement.test}",
  ]
  if statement.deviation:
    lines.append(f"      deviation: {statement.deviation.here}; because: {statement.deviation.why}")
  if reason is not None:
    lines.append(f"      FAIL: {reason}")
  return "\n".join(lines)


def to_dict(statement: Statement, reason: str | None) -> JsonObject:
  """A statement as JSON values; `reason` tells why it does not hold, or is None."""
  values = dataclasses.asdict(statement)
  del values["check"]
  return values | {"passes": reason is None, "reason": reason}


def markdown(statements: Sequence[Statement]) -> str:
  """`docs/fidelity.md`."""
  rows = [(f"§{s.section}", s.says, f"`{s.code}`", f"`{s.test}`") for s in statements]
  deviations = [(f"§{s.section}", s.says, s.deviation.here, s.deviation.why) for s in statements if s.deviation]
  lines = [
    *table(("section", "statement", "code", "test"), rows),
    "",
    "## Departures, and decisions where the paper leaves a choice",
    "",
    *table(("section", "paper", "here", "why"), deviations),
  ]
  return _HEAD + "\n" + "\n".join(lines) + "\n"

"""The paper as a contract: what it says and this code does, statement by statement, each with a check that runs.

`STATEMENTS` has them in the order of the paper; the modules are its themes. The
checks are small: they compare with NumPy (`formulas`), try everything on a toy,
or change an input and look at what changes.
"""

from transformer_jax.paper import (
  architecture,
  attention,
  decoding,
  embedding,
  parsing,
  results,
  training,
  update,
  why_self_attention,
)

_THEMES = (architecture, attention, embedding, why_self_attention, training, update, decoding, results, parsing)

STATEMENTS = sorted(
  (statement for theme in _THEMES for statement in theme.STATEMENTS),
  key=lambda statement: [*map(int, statement.section.split("."))],
)

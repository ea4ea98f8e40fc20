"""The order of the model's width in libraries that have the sines of all positions first, and then the cosines.

The paper alternates them (§3.5). `docs/interchange.md` shows why another order of the width makes the same model.
"""

import numpy as np


def halves(d_model: int) -> np.ndarray:
  """Which of our dimensions is each of theirs: 0, 2, 4, ... and then 1, 3, 5, ...: `[model]`.

  >>> print(halves(6))
  [0 2 4 1 3 5]
  """
  return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])

"""The types of the operands of a layer's matmul and of its bias."""

import jax
from jax.typing import DTypeLike


def promote_operands(
  *operands: jax.Array | None, dtype: DTypeLike | None = None, inexact: bool = True
) -> list[jax.Array | None]:
  """Operands of the matmul in `dtype`; the bias is added in float32, so that its gradient is a sum in float32.

  It is a Flax layer's `promote_dtype`. With a bias the layer's result is float32.

  Args:
    operands: the layer's input and kernel, and last its bias or None.
    dtype: the type of the matmul.
    inexact: of Flax's protocol; all types are inexact here.
  """
  *multiplied, bias = operands
  return [*(x.astype(dtype) for x in multiplied if x is not None), bias]

import jax.numpy as jnp
import numpy as np

from transformer_jax.model import masking


def assert_mask(mask, rows):
  """Compares with rows of `x` (true) and `.` (false)."""
  assert mask.dtype == jnp.bool_
  np.testing.assert_array_equal(mask, [[sign == "x" for sign in row] for row in rows.split()])


def test_padding():
  mask = masking.padding_mask(jnp.array([True, False, True]), jnp.array([True, True, False, True, False]))
  assert_mask(mask, "xx.x. ..... xx.x.")


def test_causal():
  assert_mask(masking.causal_mask(5), "x.... xx... xxx.. xxxx. xxxxx")


def test_segments():
  mask = masking.segment_mask(jnp.array([1, 1, 2, 0, 3]), jnp.array([1, 2, 2, 2, 1, 0, 0]))
  assert_mask(mask, "x...x.. x...x.. .xxx... ....... .......")


def test_window():
  assert_mask(masking.window_mask(5, 7, 2), "xxx.... xxxx... xxxxx.. .xxxxx. ..xxxxx")
  assert_mask(masking.window_mask(3, 3, 0), "x.. .x. ..x")


def test_ancestors():
  # Hypothesis 0 went through slots 1, 0, 0 and hypothesis 1 through 1, 1, 1; time 3 is not yet written.
  ancestors = jnp.array([[1, 0, 0, 0], [1, 1, 1, 0]], jnp.int32)
  assert_mask(masking.ancestor_mask(ancestors, 2), ".xx.x... .x.x.x..")
  assert_mask(masking.ancestor_mask(ancestors, 0), ".x...... .x......")
  assert_mask(masking.ancestor_mask(ancestors, 2, radius=1), "..x.x... ...x.x..")
  assert_mask(masking.ancestor_mask(ancestors, 2, radius=2), ".xx.x... .x.x.x..")


def test_combined():
  mask = masking.combine(
    masking.causal_mask(5),
    masking.segment_mask(jnp.array([1, 1, 2, 2, 0]), jnp.array([1, 1, 2, 2, 0])),
    masking.window_mask(5, 5, 1),
  )
  assert_mask(mask, "x.... xx... ..x.. ..xx. .....")
  assert_mask(masking.combine(masking.causal_mask(2)), "x. xx")

"""The paper's batch in the memory at hand."""

import dataclasses

import pytest

from configs import base, big
from tests.analysis.examples import SMALL, TINY, transformer_flops, with_model, with_train
from transformer_jax.analysis import fit, requirements
from transformer_jax.config import DataConfig
from transformer_jax.model.config import Dtype, Remat
from transformer_jax.runtime import devices
from transformer_jax.runtime.errors import InputError
from transformer_jax.runtime.sizes import gigabytes


@pytest.mark.slow
@pytest.mark.parametrize(("make", "devices"), [(base.get_config, 1), (big.get_config, 8)], ids=["base", "big"])
def test_fit_gives_the_papers_batch(make, devices):
  budget = 16 * 10**9
  fitted = fit.fit(make(), budget, devices)
  assert abs(fitted.train.batch_tokens - 25_000) <= devices * fitted.data.row_length
  assert requirements.memory(fitted, devices).total <= budget
  if fitted.train.accumulation > 1:
    fewer = with_train(fitted, accumulation=fitted.train.accumulation - 1)
    assert requirements.memory(fewer, devices).total > budget


@pytest.mark.long
def test_on_a_cpu_nothing_is_computed_again_in_vain(monkeypatch):
  """XLA keeps the first results all the same, unless its pass is disabled."""
  given = requirements.memory(SMALL).total
  for flags, saves in {"": False, "--xla_disable_hlo_passes=other,cse_barrier_expander": True}.items():
    monkeypatch.setenv("XLA_FLAGS", flags)
    for remat in (Remat.LAYER, Remat.ATTENTION):
      assert (requirements.memory(with_model(SMALL, remat=remat)).total < given) == saves
  assert fit.fit(SMALL, 10**9).model.remat is Remat.NONE


@pytest.mark.long
def test_fit_weighs_rematerialisation_against_micro_batches(monkeypatch):
  monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=cse_barrier_expander")
  config = with_train(with_model(TINY, num_layers=1), steps=1)

  def best(budget):
    fitted = fit.fit(config, budget)
    assert requirements.memory(fitted).total <= budget
    return fitted.model.remat, fitted.train.accumulation

  def needed(remat, parts):
    paper = with_train(with_model(config, remat=remat), batch_tokens=410 * 61, accumulation=parts)
    return requirements.memory(paper).total

  assert best(2 * needed(Remat.NONE, 1)) == (Remat.NONE, 1)
  assert needed(Remat.LAYER, 1) < needed(Remat.ATTENTION, 1) < needed(Remat.NONE, 1)
  # So small a model has few parameters to read again: micro-batches cost less than computing anything twice.
  remat, parts = best(needed(Remat.LAYER, 1))
  assert remat is Remat.NONE and parts > 1
  # At one row a part nothing is left but to keep less.
  assert best(needed(Remat.LAYER, 410))[0] is Remat.LAYER


def test_the_cost_of_memory():
  """Layers are computed forward once more; each part moves 20 bytes for each parameter."""
  output_layer = 2 * 31 * 38 * 997
  layers = transformer_flops(SMALL.model, 31) - output_layer
  again = fit.cost(with_model(SMALL, remat=Remat.LAYER)) - fit.cost(SMALL)
  assert again == 13 * layers
  parts = fit.cost(with_train(SMALL, accumulation=13)) - fit.cost(SMALL)
  assert parts == 300 * 12 * 20 * requirements.parameters(SMALL)["total"]
  assert fit.cost(with_train(SMALL, batch_tokens=5 * 13 * 31), 5) == fit.cost(SMALL)  # 13 rows on each device


@pytest.mark.long
def test_fit_tries_rows_of_64_tokens_where_halves_are_others():
  """Half of 120 is less, and few sentences have more than 64 tokens."""
  config = dataclasses.replace(
    with_train(with_model(TINY, num_layers=1), steps=1), data=DataConfig(row_length=120, max_length=50)
  )

  def needed(length):
    data = dataclasses.replace(config.data, row_length=length)
    row = with_train(dataclasses.replace(config, data=data), batch_tokens=25_000 // length * length)
    return requirements.memory(with_train(row, accumulation=25_000 // length)).total

  assert needed(64) < needed(120)
  assert fit.fit(config, (needed(64) + needed(120)) // 2).data.row_length == 64


def test_fit_says_when_nothing_fits():
  with pytest.raises(InputError, match=r"the model does not fit in 0\.50 GB: .* alone take [1-9]"):
    fit.fit(base.get_config(), 500 * 10**6)


def test_fit_says_when_the_state_fits_but_no_row():
  whole = requirements.state(with_train(SMALL, accumulation=1)).total
  message = f"optimizer take {gigabytes(whole)}, and what is left has no room for a row of 31 tokens$"
  with pytest.raises(InputError, match=message):
    fit.fit(SMALL, whole + 1000)


def test_micro_batches_that_were_given_need_no_memory(monkeypatch):
  """Their second sum of gradients is needed only if the fitted batch has several."""
  given, whole = with_train(TINY, accumulation=5), requirements.state(with_train(TINY, accumulation=1)).total
  with devices.traced_for("gpu"):  # on a CPU the update needs more than either
    assert requirements.state(with_train(TINY, accumulation=1)).total < requirements.state(given).total
  with pytest.raises(InputError, match=f"alone take {gigabytes(whole)}$"):
    fit.fit(given, whole - 1)
  monkeypatch.setattr(fit, "_with_fewest_parts", lambda config, *_: config)
  monkeypatch.setattr(fit, "cost", lambda config, devices: 0)
  assert fit.fit(given, whole).model == TINY.model


@pytest.mark.long
def test_fit_with_short_rows():
  assert fit.fit(SMALL, 10**9).data.row_length == 31


@pytest.mark.parametrize(("longest", "shortest"), [(20, 64), (75, 76)])
def test_a_halved_row_of_fused_attention_is_even(monkeypatch, longest, shortest):
  """cuDNN needs it; 250 halved would be 125, and the longest sentence may have an odd number of tokens."""
  config = with_model(
    dataclasses.replace(SMALL, data=DataConfig(row_length=250, max_length=longest)),
    fused_attention=True,
    dtype=Dtype.BFLOAT16,
    num_heads=1,
    d_k=8,
    d_v=8,
  )
  tried = []
  monkeypatch.setattr(fit, "_with_fewest_parts", lambda kind, budget, devices, length: tried.append(length))
  with pytest.raises(InputError, match="does not fit"):
    fit.fit(config, 10**12)
  assert [*dict.fromkeys(tried)] == [250, 124, shortest]


@pytest.mark.parametrize("devices", [1, 3, 7])
def test_any_number_of_devices_gets_the_papers_batch(monkeypatch, devices):
  monkeypatch.setattr(requirements, "memory", lambda config, devices: requirements.state(config))
  monkeypatch.setattr(fit, "cost", lambda config, devices: 0)
  fitted = fit.fit(TINY, 10**9, devices)
  assert abs(fitted.train.batch_tokens - 25_000) <= devices * 61
  assert fitted.train.batch_tokens % (61 * devices) == 0

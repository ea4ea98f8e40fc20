"""Dropout is off unless it is asked for, in every method of every model."""

import inspect

import pytest

from transformer_jax import registry


@pytest.mark.parametrize("name", list(registry.names()))
def test_deterministic_is_the_default_and_has_to_be_named(name):
  model = type(registry.module(registry.config_class(name)()))
  signatures = [inspect.signature(method) for _, method in inspect.getmembers(model, inspect.isfunction)]
  parameters = [signature.parameters.get("deterministic") for signature in signatures]
  found = [each for each in parameters if each is not None and each.default is not each.empty]
  assert found
  for parameter in found:
    assert parameter.default is True and parameter.kind is parameter.KEYWORD_ONLY

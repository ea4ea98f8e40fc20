"""Everyday English sentences, all different, for the model in `models/en-de`."""

import itertools

_WHO = ("My brother", "The old teacher", "A young woman", "Our neighbour", "The man in the blue coat", "Tom's friend")
_DOES = ("reads", "forgot", "is looking for", "would like to buy", "has found", "could not open", "often talks about")
_WHAT = ("a letter", "the red book", "his new bicycle", "the key to the house", "a picture of the city")
_WHEN = ("today", "in the garden", "because it is raining", "before the shop closes on Saturday", "without any help")


def sentences(count: int) -> list[str]:
  """The first `count` of all combinations, in an order that mixes short and long ones."""
  every = [" ".join(parts) + "." for parts in itertools.product(_WHO, _DOES, _WHAT, _WHEN)]
  return [every[i * 389 % len(every)] for i in range(min(count, len(every)))]

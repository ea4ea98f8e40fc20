"""A tokenizer for tests of packing."""

from transformer_jax.data.tokenizer import Tokenizer


class Letters(Tokenizer):
  """A tokenizer with a token for each character."""

  longest_piece = 1

  def __init__(self, name="letters", vocab_size=128):
    self.name, self.vocab_size = name, vocab_size

  def encode_batch(self, texts):
    return [[ord(character) for character in text] for text in texts]

  def decode(self, ids):
    return "".join(map(chr, ids))

  def pieces(self, ids):
    return [*map(chr, ids)]

  def files(self):
    return {"name": self.name.encode()}

"""A tokenizer for tests of packing."""


class Letters:
  """A tokenizer with a token for each character."""

  longest_piece = 1

  def __init__(self, name="letters", vocab_size=128):
    self.name, self.vocab_size, self.vocab_sizes = name, vocab_size, (vocab_size,)

  @property
  def source(self):
    return self

  target = source

  def encode_batch(self, texts):
    return [[ord(character) for character in text] for text in texts]

  def fingerprint(self):
    return self.name

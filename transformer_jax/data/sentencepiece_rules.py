"""The rules of normalisation in the file of a SentencePiece model: texts that are written in place of others.

The file is a protocol buffer. It is read here without sentencepiece's own module for that, which needs another version
of protobuf than Apache Beam does.
"""

from collections.abc import Iterator

_NORMALIZER, _DENORMALIZER = 3, 5  # fields of ModelProto, each a NormalizerSpec
_CHARSMAP = 2  # precompiled_charsmap of NormalizerSpec: the size of a trie, the trie, and the texts
_SIZES = {1: 8, 5: 4}  # of fixed values, by wire type
_BYTES = 2  # the wire type of what has a length


def replacements(model: bytes) -> list[bytes]:
  """The texts that the rules of a model write, one after the other, each with a zero byte after it; [] without rules.

  Raises:
    ValueError: these are not the bytes of a protocol buffer.
  """
  specs = [spec for number, spec in _fields(model) if number in (_NORMALIZER, _DENORMALIZER)]
  maps = [value for spec in specs for number, value in _fields(spec) if number == _CHARSMAP and value]
  return [value[4 + int.from_bytes(value[:4], "little") :] for value in maps]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
  """Yields the number and the content of each field that has a length."""
  place = 0
  while place < len(message):
    tag, place = _varint(message, place)
    number, kind = tag >> 3, tag & 7
    if kind == 0:
      _, place = _varint(message, place)
    elif kind == _BYTES:
      size, place = _varint(message, place)
      yield number, message[place : place + size]
      place += size
    elif kind in _SIZES:
      place += _SIZES[kind]
    else:
      raise ValueError("a field of an unknown kind")


def _varint(message: bytes, place: int) -> tuple[int, int]:
  """The number at a place, seven bits a byte with the lowest first, and the place after it."""
  value = shift = 0
  while place < len(message) and shift < 70:
    byte = message[place]
    value, place, shift = value | (byte & 0x7F) << shift, place + 1, shift + 7
    if byte < 0x80:
      return value, place
  raise ValueError("a number has no end")

"""The rules of normalisation in the file of a SentencePiece model: texts that are written in place of others."""

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2


def replacements(model: bytes) -> list[bytes]:
  """The texts that the rules of a model write, one after the other, each with a zero byte after it; [] without rules.

  Raises:
    ValueError: these are not the bytes of a SentencePiece model.
  """
  try:
    found = sentencepiece_model_pb2.ModelProto.FromString(model)  # pyright: ignore[reportAttributeAccessIssue]
  except DecodeError as error:
    raise ValueError("these bytes are no SentencePiece model") from error
  # Each has the size of a trie, the trie, and the texts.
  maps = [spec.precompiled_charsmap for spec in (found.normalizer_spec, found.denormalizer_spec)]
  return [value[4 + int.from_bytes(value[:4], "little") :] for value in maps if value]

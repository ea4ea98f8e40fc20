"""Rules of normalisation that a stranger may have put into a SentencePiece model."""

import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.sentencepiece_rules import replacements
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runtime.errors import InputError

LOSSLESS = {
  "remove_extra_whitespaces": False,
  "add_dummy_prefix": False,
  "byte_fallback": True,
  "character_coverage": 1.0,
  **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
}


def learned(path=None, denormalizer=None, **options):
  """A model with the rules of files, or those that SentencePiece knows by a name."""
  files = {"normalization_rule_tsv": path, "denormalization_rule_tsv": denormalizer}
  named = {} if path else {"normalization_rule_name": "identity"}
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(  # pyright: ignore[reportAttributeAccessIssue]
    sentence_iterator=iter(["a small house .", "houses ."] * 5),
    model_writer=model,
    minloglevel=3,
    **{"vocab_size": 271, **LOSSLESS, **named, **{key: str(file) for key, file in files.items() if file}, **options},
  )
  return model.getvalue()


def rules(path, text, times):
  """A file with the rule that writes so many of a text in place of Q."""
  path.write_text(f"51\t{' '.join([f'{ord(text):X}'] * times)}\n")
  return path


def listed(model):
  processor = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
  pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
  return ListedTokenizer(model, PieceList(tuple(pieces), "<pad>", "<unk>", "</s>"), "their.spm")


def test_the_texts_are_those_behind_the_trie(tmp_path):
  assert replacements(learned()) == []
  model = learned(rules(tmp_path / "a", "ü", 3), rules(tmp_path / "b", "x", 2))
  assert replacements(model) == ["üüü\0".encode(), b"xx\0"]
  model = learned(normalization_rule_name="nmt_nfkc")
  [found] = replacements(model)
  whole = sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap
  assert found and whole.endswith(found) and len(whole) - len(found) == 4 + int.from_bytes(whole[:4], "little")
  assert max(map(len, found.split(b"\0"))) == 33  # docs of `_LONGEST_RULE`


@pytest.mark.parametrize(("times", "is_short"), [(1, True), (64, True), (65, False), (100_000, False)])
@pytest.mark.parametrize("inverse", [False, True])
def test_a_line_of_few_characters_does_not_become_a_book(tmp_path, times, is_short, inverse):
  file = rules(tmp_path / "rules", "A", times)
  model = learned(denormalizer=file) if inverse else learned(file)
  with pytest.raises(InputError, match=r"^their.model does not give back every text: learn it with "):
    SentencePieceTokenizer(model, "their.model")
  if is_short:
    assert listed(model).vocab_size == 271
  else:
    with pytest.raises(InputError, match=r"^their.spm writes more than 64 bytes in place of a character: choose "):
      listed(model)


def test_the_rules_of_sentencepiece_are_short():
  for name in ("nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"):
    assert listed(learned(normalization_rule_name=name)).vocab_size == 271


@given(st.binary(max_size=67))
def test_bytes_that_are_no_model(content):
  try:
    assert isinstance(replacements(content), list)
  except ValueError as error:
    assert str(error) == "these bytes are no SentencePiece model"

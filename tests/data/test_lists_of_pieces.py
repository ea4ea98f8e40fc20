"""What is no piece of a vocabulary, and no corpus."""

import io
import json

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from transformer_jax.data import subwords
from transformer_jax.data.listed_tokenizer import ListedTokenizer, PieceList
from transformer_jax.data.packing import encode_pairs
from transformer_jax.data.pair_counts import PairCounts
from transformer_jax.data.text import TextPairs
from transformer_jax.data.tokenizer import is_piece
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.decoding.long_lines import REFUSE, SPLIT, parts
from transformer_jax.model.special_tokens import EOS
from transformer_jax.runtime.errors import InputError


def test_half_a_character_is_no_piece_nor_is_a_whole_book():
  """A model that writes one piece again and again must not fill the memory."""
  for value in ("ä", "ä" * 4096):
    assert is_piece(value) and subwords.is_texts([value, "b"])
  for value in ("\ud800", "ä" * 4097, 5, None):
    assert not is_piece(value) and not subwords.is_texts(["ä", value])


def listed(**more):
  """The tokenizer of a small list, with the codes of two languages."""
  written = io.BytesIO()
  options = {"model_writer": written, "vocab_size": 15, "model_type": "unigram", "minloglevel": 3, **more}
  sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a small house .", "houses ."] * 5), **options)  # pyright: ignore[reportAttributeAccessIssue]
  processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())  # pyright: ignore[reportCallIssue]
  learned = [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]
  pieces = ["</s>", "<unk>", ">>fr<<", ">>de<<", *learned, "<pad>"]
  return ListedTokenizer(written.getvalue(), PieceList(tuple(pieces), "<pad>", "<unk>", "</s>"))


@pytest.mark.parametrize(("length", "is_short"), [(64, True), (65, False), (100_000, False)])
def test_an_unknown_piece_does_not_become_a_book(length, is_short):
  if is_short:
    assert listed(unk_surface="A" * length).vocab_size > 0
  else:
    with pytest.raises(InputError, match="writes more than 64 bytes for an unknown piece: choose another model"):
      listed(unk_surface="A" * length)


def changed(change):
  """The tokenizer of `listed`, with a change of its model."""
  tokenizer = listed()
  model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.to_bytes())  # pyright: ignore[reportAttributeAccessIssue]
  change(model)
  return ListedTokenizer(model.SerializeToString(), tokenizer.vocabulary, "source.spm")


def test_a_model_whose_unknown_piece_is_another_one_is_refused():
  with pytest.raises(InputError, match=r"source\.spm is not a SentencePiece model: copy it again"):
    changed(lambda model: setattr(model.trainer_spec, "unk_piece", "s"))


def test_a_space_behind_the_text_is_no_word():
  """Such a model appends a space as it is; others put the sign of a space in front."""

  def append_spaces(model):
    model.trainer_spec.treat_whitespace_as_suffix, model.normalizer_spec.escape_whitespaces = True, False

  assert {0, 1} <= {*changed(append_spaces).words("a house")} <= {0, 1, None}


@pytest.mark.parametrize(("line", "expected"), [(">>fr<< ", ">>fr<<"), ("", None), (">>it<< ", None)])
def test_each_part_of_a_long_line_has_the_code_of_its_language(line, expected):
  """A code that is no piece means nothing to the model, and is text."""
  tokenizer = listed()
  [found], error = parts([line + "a small house . " * 5], tokenizer, 20, SPLIT, 1, str, [])
  first = [tokenizer.pieces(tokens)[0] for tokens in found]
  assert error is None and len(found) > 1 and max(map(len, found)) <= 20
  assert [piece == ">>fr<<" for piece in first] == [expected is not None] * len(found)


@pytest.mark.parametrize("line", ["", "\u200b", "\ufeff \x01", ">>fr<<", ">>fr<<\u200b", ">>fr<< \u200b "])
def test_a_line_of_which_no_token_is_left_is_empty(line):
  """The normalisation of SentencePiece deletes such characters, and a model would invent a text for EOS alone."""
  warnings = []
  assert parts([line], listed(), 20, REFUSE, 1, warnings.append, []) == ([[]], None) and not warnings


@pytest.mark.parametrize("space", [" ", "\u2028 "])
def test_a_long_line_of_spaces_is_empty(space):
  warnings = []
  spaces = listed(remove_extra_whitespaces=False, normalization_rule_name="identity")
  assert parts([">>fr<<" + space * 100], spaces, 20, SPLIT, 1, warnings.append, []) == ([[]], None)
  assert not warnings


def test_a_line_without_the_code_of_a_language_is_told_of():
  warnings = []
  parts(["a house", ">>fr<< a house", ">>it<< a", ""], listed(), 20, SPLIT, 1, warnings.append, [])
  assert [warning.line for warning in warnings] == [1, 3]
  assert (
    warnings[0] == "line 1 begins with no code of a language, such as >>fr<<: its translation may be in any language"
  )


def test_the_tag_of_a_run_of_ours_is_a_code_too():
  """It is a piece of the SentencePiece model, with the space in front of it; a tag that is no piece is text."""
  tokenizer = listed(user_defined_symbols=["\u2581<2de>", "\u2581<2fr>"], vocab_size=17)
  assert tokenizer.codes == [">>fr<<", ">>de<<", "<2de>", "<2fr>"]
  assert [tokenizer.head(text) for text in ("<2fr> a", "<2it> a", "<2fr", "a <2fr>")] == ["<2fr>", "", "", ""]
  [found], _ = parts(["<2fr> " + "a small house . " * 5], tokenizer, 20, SPLIT, 1, str, [])
  assert len(found) > 1 and {tokenizer.pieces(tokens)[0].strip() for tokens in found} == {"<2fr>"}
  assert parts(["<2fr>"], tokenizer, 20, SPLIT, 1, str, []) == ([[]], None)


def test_a_tag_of_ours_without_the_space_in_front_of_it_has_several_tokens():
  """So it is in the models that `export` writes."""
  tokenizer = listed(user_defined_symbols=["<2de>", "<2fr>"], vocab_size=17)
  assert tokenizer.pieces(tokenizer.encode("<2de> a"))[:3] == [" ", "<2de>", " "]
  for empty in ("<2de>", "<2de> ", "<2de>\u200b"):
    assert parts([empty], tokenizer, 20, SPLIT, 1, str, []) == ([[]], None)
  [found], _ = parts(["<2de> " + "a small house . " * 5], tokenizer, 20, SPLIT, 1, str, [])
  texts = ["".join(tokenizer.pieces(tokens[:-1])) for tokens in found]
  assert len(texts) > 1 and {text[: len(" <2de> ")] for text in texts} == {" <2de> "}


def test_the_first_numbers_are_text_where_the_list_has_no_special_piece():
  tokenizer = listed()
  assert tokenizer.codes == [">>fr<<", ">>de<<"]
  assert [tokenizer.pieces([i])[0] for i in (0, 1, 3)] == ["<pad>", "<unk>", "</s>"]
  assert {*tokenizer.special} == {0, 1, 3} and {*tokenizer.suppressed} == {0, 1}
  both = TokenizerPair(tokenizer, tokenizer)
  assert (both.special, both.suppressed, both.codes) == (tokenizer.special, tokenizer.suppressed, tokenizer.codes)


@pytest.mark.parametrize("between", ["X" * 9000, " " * 9000])
def test_a_line_of_few_tokens_is_not_too_long(between):
  """One token stands for any number of unknown characters, and the model drops spaces that are repeated."""
  tokenizer = listed()
  found, error = parts([f"a {between} house"], tokenizer, 20, REFUSE, 1, str, [])
  assert error is None and len(found[0]) == 1 and len(found[0][0]) < 20
  counts = PairCounts()
  [(source, _)] = encode_pairs([(f"a {between * 9} house", "a house")], tokenizer, 20, counts)
  assert source.tolist() == [*tokenizer.encode(f"a {between * 9} house"), EOS] and not counts.too_long + counts.empty


def test_the_files_hold_the_model_and_the_list():
  tokenizer = listed()
  files = tokenizer.files()
  again = PieceList.from_json(json.loads(files["pieces.json"]), "pieces.json")
  assert ListedTokenizer(files["tokenizer.model"], again).fingerprint() == tokenizer.fingerprint()


@pytest.mark.parametrize("bytes_", [False, True])
@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("a house", {0, 1}),
    (" small  XYZ house", {0, 1, 2}),  # XYZ is no piece
    ("a\u00a0house .", {0, 1}),  # the normalisation makes a space of a space that does not break
    ("a\u3000small\u00a0house", {0}),
    (">>fr<< a 한국 \N{VULGAR FRACTION ONE HALF} e\N{COMBINING ACUTE ACCENT}", {0, 1, 2, 3, 4}),
    (">>fr<<a", {0}),
    ("", set()),
  ],
)
def test_the_words_of_a_text_are_its_own(text, expected, bytes_):
  tokenizer = listed(byte_fallback=bytes_, vocab_size=271 if bytes_ else 15)
  words = tokenizer.words(text)
  assert len(words) == len(tokenizer.encode(text))
  known = [word for word in words if word is not None]
  assert known == sorted(known) and set(known) == expected
  assert len(expected) == len([word for word in text.split(" ") if word])


@pytest.mark.parametrize("which", ["a,b,c", "a,", ",b", "a;b,c,d"])
def test_a_corpus_has_one_prefix_or_two_files(which, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for name in ("a.en", "a.de", "a", "b", "c"):
    (tmp_path / name).write_text("x\n")
  with pytest.raises(InputError, match="is not a corpus: write PREFIX or SOURCE,TARGET"):
    TextPairs(which, "en", "de")


def test_other_numbers_of_the_pieces_are_another_vocabulary():
  """Packed rows, which are kept by its digest, hold numbers."""
  one = listed()
  other = ListedTokenizer(one.to_bytes(), one.vocabulary._replace(pieces=one.vocabulary.pieces[::-1]))
  assert one.encode("a house") != other.encode("a house")
  assert one.fingerprint() != other.fingerprint()
  assert TokenizerPair(one, one).fingerprint() != TokenizerPair(other, other).fingerprint()

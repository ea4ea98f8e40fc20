"""The SentencePiece vocabulary: nothing lost, nothing random, clear complaints."""

import io
import itertools
import subprocess
import sys

import pytest
import sentencepiece
from etils import epath
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.nasty import LINES
from transformer_jax.data import sentencepiece_tokenizer as module
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.model.special_tokens import BOS, EOS, PAD, UNK
from transformer_jax.runtime.errors import InputError

SIZE = 337
WORDS = ["riding", "a", "horse", "reitet", "ein", "Pferd", "über", "grün", "<s>", "</s>", "<pad>", "<0x41>", "말", "12"]
SENTENCES = [" ".join(WORDS[(i * j) % len(WORDS)] for j in range(1, 11)) for i in range(1, 60)]


@pytest.fixture(scope="module")
def tokenizer():
  return SentencePieceTokenizer.learn(SENTENCES, SIZE)


@settings(max_examples=300)
@given(LINES)
@example("")
@example(" ")
@example("\u2581")
@example(" \u2581\u2581 a")
@example("<s></s><pad><unk><0x41>")
def test_decoding_gives_back_every_line(tokenizer, text):
  ids = tokenizer.encode(text)
  assert tokenizer.decode(ids) == text
  assert all(EOS < i < SIZE for i in ids)
  assert (not ids) == (not text)


@settings(max_examples=50)
@given(st.lists(LINES))
def test_many_texts_are_encoded_as_each_alone(tokenizer, texts):
  assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@settings(max_examples=200)
@given(st.lists(st.integers(0, SIZE - 1)))
def test_all_ids_decode_to_text(tokenizer, ids):
  tokenizer.decode(ids).encode()


def test_a_word_has_the_same_piece_at_the_start_and_in_the_middle(tokenizer):
  horse = tokenizer.encode("horse")
  assert len(horse) == 1
  assert tokenizer.encode("horse horse") == 2 * horse
  assert tokenizer.encode(" horse") != horse


def test_control_pieces_are_no_text(tokenizer):
  ids = tokenizer.encode("a horse")
  assert tokenizer.decode([PAD, BOS, *ids, EOS, PAD]) == "a horse"
  assert tokenizer.decode([UNK]) == "\ufffd"
  byte = tokenizer.encode("\u2581")[1:]
  assert len(byte) == 3
  assert tokenizer.decode(byte[:2]) == "\ufffd"


def test_same_text_same_pieces_in_another_process(tokenizer):
  code = (
    "from tests.data.test_tokenizer import *; import sys; "
    "sys.stdout.write(SentencePieceTokenizer.learn(iter(SENTENCES), SIZE).fingerprint())"
  )
  run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
  assert run.stdout == tokenizer.fingerprint()
  assert run.stderr == ""
  assert SentencePieceTokenizer.learn(SENTENCES[1:], SIZE).fingerprint() != tokenizer.fingerprint()


def test_the_file_is_the_same_tokenizer(tokenizer, tmp_path):
  (tmp_path / "tokenizer.model").write_bytes(tokenizer.to_bytes())
  again = SentencePieceTokenizer.load(str(tmp_path / "tokenizer.model"))
  assert again.fingerprint() == tokenizer.fingerprint()
  assert again.vocab_size == SIZE
  assert again.encode_batch(SENTENCES) == tokenizer.encode_batch(SENTENCES)


def test_learns_from_lines_that_sentencepiece_alone_would_drop():
  long = "qqqqzzzz " * 1000
  longer = "xxxxyyyy " * 130_000  # than a megabyte, in one line
  tokenizer = SentencePieceTokenizer.learn([long, "vvvv\0wwww", "kkkk\u2585jjjj"] * 3 + [longer], 286)
  for word in ("qqqq", "vvvv", "wwww", "kkkk", "jjjj", "xxxx", "yyyy"):
    assert all(i >= 260 for i in tokenizer.encode(word)), word  # not in bytes
  assert len(SentencePieceTokenizer.learn([longer], 275).encode("xxxxyyyy")) == 1


@pytest.mark.parametrize(
  "text", ["", "a", "ab cd", "ab " * 9, " " * 20, "abcdefghijklmnopq", "abcdefghij k lmnopqrstuv", "  abcdefg"]
)
def test_the_parts_of_a_text_are_its_words(monkeypatch, text):
  monkeypatch.setattr(module, "_LONGEST_PART", 8)
  parts = list(module._learnable(text))
  assert all(len(part) <= 8 for part in parts)
  assert "".join(parts).replace(" ", "") == text.replace(" ", "")
  if all(len(word) < 8 for word in text.split(" ")):
    assert [word for part in parts for word in part.split()] == text.split()


def test_of_too_many_sentences_takes_an_evenly_spread_part_of_both_sides():
  assert list(module._spread(map(str, range(7)), 7, 100)) == [str(i) for i in range(7)]
  numbers = [int(n) for n in module._spread(map(str, range(1000)), 100, 10**6)]
  golden = (1 + 5**0.5) / 2
  assert numbers == [n for n in range(1000) if n / golden % 1 < 1 / 27]


@pytest.mark.parametrize("turns", [2, 3, 4, 6, 9, 12, 24, 54])
def test_texts_that_are_read_in_turns_are_sampled_equally(turns):
  """As directions of translation are, so that the vocabulary knows each language."""
  numbers = [int(n) for n in module._spread(map(str, range(8100 * turns)), 300 * turns, 10**9)]
  counts = [sum(n % turns == turn for n in numbers) for turn in range(turns)]
  assert min(counts) > 90 and max(counts) - min(counts) <= 8
  assert max(after - before for before, after in itertools.pairwise(numbers)) <= 3 * 8100 * turns / len(numbers)


def test_of_too_many_bytes_takes_an_evenly_spread_part_of_both_sides():
  sentences = ["é" * 50 + f"{n:03d}" for n in range(900)]  # of 103 bytes
  assert list(module._spread(sentences, 1000, 900 * 103)) == sentences
  numbers = [int(sentence[-3:]) for sentence in module._spread(sentences, 1000, 900 * 103 - 1)]
  assert numbers == [n for n in range(900) if n / ((1 + 5**0.5) / 2) % 1 < 1 / 3]


def test_however_long_its_lines_a_text_is_learned_from_in_bounded_memory():
  for lines in (["ab " * (1 << 22)] * 43, ["a"] * 97 + ["ab " * (1 << 22)] * 43, ["x", "ab " * (1 << 22), "y"] * 43):
    assert sum(map(len, module._spread(lines, 2_000_000, module._MOST_BYTES))) <= module._MOST_BYTES == 1 << 28


# What SentencePiece takes, which is not Python's memory; the lines are the same object, so that these are not counted.
MEMORY = """
import resource, sys
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
SentencePieceTokenizer.learn(["to be or not to be " * 55_000] * 600, 270)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.slow
def test_six_hundred_lines_of_a_megabyte_take_a_gigabyte():
  done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
  assert int(done.stdout) < 1300


def complaint(action, *parts):
  with pytest.raises(InputError) as caught:
    action()
  for part in ("\n", "trainer_interface"):
    assert part not in str(caught.value)
  for part in parts:
    assert part in str(caught.value)


def test_vocabularies_that_cannot_be(capfd):
  complaint(lambda: SentencePieceTokenizer.learn(SENTENCES, 5003), "config.model.vocab_size is 5003", "at most 3")
  complaint(lambda: SentencePieceTokenizer.learn(SENTENCES, 263), "config.model.vocab_size is 263", "at least 2")
  complaint(lambda: SentencePieceTokenizer.learn(SENTENCES, 3), "config.model.vocab_size is 3", "tokens need 260")
  complaint(lambda: SentencePieceTokenizer.learn(SENTENCES, 5), "config.model.vocab_size is 5", "at least 2")
  complaint(lambda: SentencePieceTokenizer.learn([], 300), "the training text has no sentence")
  assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bound", ["least", "most"])
def test_the_sizes_that_the_complaints_name_are_right(bound):
  with pytest.raises(InputError) as caught:
    SentencePieceTokenizer.learn(SENTENCES, {"least": 261, "most": 5003}[bound])
  named = int(str(caught.value).split()[-1])
  assert SentencePieceTokenizer.learn(SENTENCES, named).vocab_size == named
  with pytest.raises(InputError):
    SentencePieceTokenizer.learn(SENTENCES, named + {"least": -1, "most": 1}[bound])


def foreign(**options):
  model = io.BytesIO()
  ours = dict(pad_id=0, unk_id=1, bos_id=2, eos_id=3, byte_fallback=True, vocab_size=SIZE, minloglevel=3)
  sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=model, **(ours | options))
  return model.getvalue()


DAMAGED = """
import random, sys
from tests.fuzz_run_folder import TEXTS, mutated
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runtime.errors import InputError

model, generator = open(sys.argv[1], "rb").read(), random.Random(0)
for _ in range(300):
  try:
    tokenizer = SentencePieceTokenizer(mutated(model, generator))
  except InputError:
    print("refused")
    continue
  print("used", *[tokenizer.decode(tokenizer.encode(text)) == text for text in TEXTS])
"""


@pytest.mark.long
def test_damaged_models_are_refused_or_do_what_they_should(tokenizer, tmp_path):
  """In a process of its own, as it is C++ that reads them."""
  (tmp_path / "model").write_bytes(tokenizer.to_bytes())
  run = subprocess.run([sys.executable, "-c", DAMAGED, tmp_path / "model"], capture_output=True, text=True, check=False)
  lines = run.stdout.splitlines()
  assert (run.returncode, run.stderr, len(lines)) == (0, "", 300)
  assert lines.count("refused") > 100 and "False" not in run.stdout


def badly_spelled():
  """A byte that is none, and a piece that is no text."""
  model = foreign(model_type="bpe")
  return [model.replace(b"<0x41>", other) for other in (b"<0xYZ>", b"<0x4\xff>")]


def test_files_that_are_no_such_model(tmp_path):
  path = tmp_path / "some.model"
  complaint(lambda: SentencePieceTokenizer.load(path), f"{path} does not exist: check the path")
  for content in (b"", b"garbage", *badly_spelled()):
    path.write_bytes(content)
    complaint(lambda: SentencePieceTokenizer.load(path), f"{path}")
  with path.open("wb") as file:
    file.truncate(1 << 40)  # which the disk does not hold
  complaint(lambda: SentencePieceTokenizer.load(path), f"{path} has more than 16,777,216 bytes")
  path.write_bytes(foreign(pad_id=-1, unk_id=0, bos_id=1, eos_id=2, model_type="bpe"))
  complaint(lambda: SentencePieceTokenizer.load(path), f"{path}", "[-1, 0, 1, 2]", "--pad_id=0")
  path.write_bytes(foreign(model_type="bpe"))
  complaint(lambda: SentencePieceTokenizer.load(path), f"{path}", "--normalization_rule_name=identity")


LOSSLESS = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False}
OTHERS = [
  {"normalization_rule_name": "nmt_nfkc"},
  {"remove_extra_whitespaces": True},
  {"add_dummy_prefix": True},
  {"byte_fallback": False, "vocab_size": 50},
]


@pytest.mark.parametrize("other", [{}, *OTHERS], ids=lambda other: next(iter(other), "none"))
def test_each_option_that_would_lose_text_is_refused(other):
  """The others are as they should be."""
  model = foreign(model_type="bpe", character_coverage=1.0, **LOSSLESS | other)
  if other:
    complaint(lambda: SentencePieceTokenizer(model, "theirs"), "theirs does not give back every text: learn it with --")
  else:
    assert SentencePieceTokenizer(model).decode(SentencePieceTokenizer(model).encode("  a b ")) == "  a b "


def test_a_vocabulary_in_a_bucket_without_its_library(monkeypatch):
  def missing(self, mode):
    raise ImportError("no gcsfs")

  monkeypatch.setattr(type(epath.Path("gs://bucket/x")), "open", missing)
  with pytest.raises(InputError, match=r"cannot read gs://bucket/x: for gs:// install etils\[epath-gcs\]"):
    SentencePieceTokenizer.load("gs://bucket/x")


def test_a_byte_that_is_a_character_is_shown_as_it(tokenizer):
  assert tokenizer.pieces(tokenizer.encode("\x07ß")) == [" ", "\x07", "<0xC3>", "<0x9F>"]

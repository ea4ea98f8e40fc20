"""Many languages in one model: the pairs, their proportions, and the tags as pieces."""

import dataclasses
import resource
from collections import Counter

import pytest

from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.data import pipeline, tagged, text
from transformer_jax.data.corpus import open_corpus
from transformer_jax.data.packing import SOURCE
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tagged import TaggedPairs, directions_of, divided, is_empty, tags_of
from transformer_jax.data.text import digest
from transformer_jax.decoding.long_lines import SPLIT, parts
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.evaluator import Evaluator
from transformer_jax.tasks.translation import TASK

LANGUAGES = ("en", "de", "fr", "cs")


@pytest.fixture
def texts(tmp_path):
  """`big` of 29 lines in four languages, `small` of 3 in two; each line says its language and number."""
  for name, count, languages in (("big", 29, LANGUAGES), ("small", 3, LANGUAGES[:2])):
    for language in languages:
      lines = [f"{name} {language} {number}" for number in range(count)]
      (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
  return str(tmp_path)


def directions(pairs) -> Counter:
  return Counter((source.split()[0], *source.split()[1:3], target.split()[1]) for source, target in pairs)


def test_every_direction_is_read_with_its_tag(texts):
  pairs = TaggedPairs(f"{texts}/big:en+de+fr+cs", "xx", "yy")
  found = [*pairs]
  expected = {
    (f"<2{target}> big {source} {number}", f"big {target} {number}")
    for source in LANGUAGES
    for target in LANGUAGES
    if source != target
    for number in range(29)
  }
  assert len(found) == len(expected) == 12 * 29 and set(found) == expected
  assert [target.split()[2] for _, target in found] == sorted((t.split()[2] for _, t in found), key=int)  # in turns


def test_a_file_of_several_directions_is_read_once_for_the_fingerprint(texts, monkeypatch):
  read = []
  monkeypatch.setattr(tagged, "digest", lambda file: read.append(str(file)) or digest(file))
  monkeypatch.setattr(text, "digest", lambda file: pytest.fail("not by the shared function"))
  found = TaggedPairs(f"{texts}/big:en+de+fr+cs", "en", "de").fingerprint()
  assert sorted(read) == [f"{texts}/big.{language}" for language in sorted(("en", "de", "fr", "cs"))]
  monkeypatch.setattr(text, "digest", digest)
  assert found != TaggedPairs(f"{texts}/big:en+de+fr", "en", "de").fingerprint()


def test_one_direction_the_default_and_a_weight(texts):
  found = directions(
    TaggedPairs(f"{texts}/small:de-en*2; {texts}/small ;{texts}/big.fr,{texts}/big.cs:fr-cs", "en", "de")
  )
  assert found == {
    ("<2en>", "small", "de", "en"): 6,
    ("<2de>", "small", "en", "de"): 3,
    ("<2cs>", "big", "fr", "cs"): 29,
  }


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0, 1e9])
def test_directions_are_read_in_the_proportions_of_the_temperature(texts, temperature):
  pairs = TaggedPairs(f"{texts}/big:en-fr;{texts}/small:en-de", "en", "de", temperature)
  found = directions(pairs)
  big, small = found["<2fr>", "big", "en", "fr"], found["<2de>", "small", "en", "de"]
  assert big == 29 and len({pair for pair in pairs if "small" in pair[1]}) == 3  # nothing is lost
  assert small / big == pytest.approx((3 / 29) ** (1 / temperature), abs=2 / 29)


def test_more_directions_than_a_process_may_have_open_files(tmp_path):
  names = [f"l{n}" for n in range(12)]  # 132 directions, of two files each
  for name in names:
    (tmp_path / f"text.{name}").write_text(f"{name}\n")
  limits = resource.getrlimit(resource.RLIMIT_NOFILE)
  resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
  try:
    pairs = [*TaggedPairs(f"{tmp_path}/text:{'+'.join(names)}", "l0", "l1")]
  finally:
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
  assert len(pairs) == len(set(pairs)) == 132


def test_a_direction_in_several_corpora_has_one_temperature(texts):
  """29 + 3 pairs of one direction and 29 of the other: each corpus is repeated as its direction is."""
  pairs = TaggedPairs(f"{texts}/big:en-de;{texts}/small:en-de;{texts}/big:en-fr", "en", "de", 2.0)
  assert pairs.weights() == pytest.approx([1, 1, (32 / 29) ** 0.5])
  pairs = TaggedPairs(f"{texts}/big:en-de;{texts}/small:de-en*1e-9", "en", "de", 2.0)
  assert pairs.weights() == pytest.approx([1, 29**0.5])  # of the second no pair is selected


def test_an_empty_source_stays_empty(tmp_path):
  (tmp_path / "a.en").write_text("x\n \n")
  (tmp_path / "a.de").write_text("y\nz\n")
  assert [*TaggedPairs(f"{tmp_path}/a", "en", "de")] == [("<2de> x", "y"), (" ", "z")]


@pytest.mark.parametrize("which", ["big:en-en", "big:en+de+en"])
def test_a_direction_within_one_language_is_refused(texts, which):
  with pytest.raises(InputError, match="has one language twice: write PREFIX:en-de"):
    TaggedPairs(f"{texts}/{which}", "en", "de")


def test_a_text_of_absurdly_many_languages_is_refused_before_its_directions_are_listed():
  languages = [str(number) for number in range(1_000_000)]
  for which in (f"p:{'+'.join(languages)}", ";".join([f"p:{'+'.join(languages[:99])}"] * 2)):
    with pytest.raises(
      InputError, match=r"^p:0\+1\+2.{,40}\.\.\. has more than 10,000 directions: name fewer languages"
    ):
      TaggedPairs(which, "en", "de")


@pytest.mark.parametrize("named", [":en-de", ":en+de+fr"])
def test_directions_without_tags_are_told(texts, named):
  data = DataConfig(corpus=Corpus.TEXT, train=f"{texts}/big{named}*2")
  with pytest.raises(InputError, match="does not exist, ") as raised:
    open_corpus(data, data.train)
  assert str(raised.value).endswith(f"; '{named}' names directions only with config.data.tags=True")


def test_two_files_are_one_direction(texts):
  assert len([*TaggedPairs(f"{texts}/big.en,{texts}/big.de:en-de", "en", "de")]) == 29
  with pytest.raises(InputError, match=r"has two files, which are one direction: write SOURCE,TARGET:en-de"):
    TaggedPairs(f"{texts}/big.en,{texts}/big.de:en+de", "en", "de")


def test_a_code_may_have_a_hyphen_where_all_directions_are_named(tmp_path):
  for language in ("en", "pt-BR", "zh-Hans"):
    (tmp_path / f"a.{language}").write_text(f"{language}\n")
  found = {*TaggedPairs(f"{tmp_path}/a:en+pt-BR+zh-Hans*2", "en", "de")}
  assert found == {(f"<2{b}> {a}", b) for a in ("en", "pt-BR", "zh-Hans") for b in ("en", "pt-BR", "zh-Hans") if a != b}
  assert len([*TaggedPairs(f"{tmp_path}/a", "en", "pt-BR")]) == 1


def test_the_fingerprint_names_the_directions(texts):
  names = ["big:en-de", "big:de-en", "big:en+de", "big:en-de;small:en-de"]
  found = {
    TaggedPairs(";".join(f"{texts}/{part}" for part in name.split(";")), "en", "de").fingerprint() for name in names
  }
  found.add(TaggedPairs(f"{texts}/big:en-de", "en", "de", 5.0).fingerprint())
  names = [f"{texts}/big.en,{texts}/big.de:en-{tag}" for tag in ("news", "talks")]
  found |= {TaggedPairs(name, "en", "de").fingerprint() for name in names}
  assert len(found) == 7


def test_a_tag_is_one_piece_and_temperature_is_for_training_alone(texts, tmp_path):
  data = DataConfig(corpus=Corpus.TEXT, train=f"{texts}/big:en+de+fr;{texts}/small", tags=True, temperature=5.0)
  data.validation, data.cache_dir, data.row_length = f"{texts}/small:en+de;{texts}/big:en-de", str(tmp_path), 32
  assert len(pipeline.read_pairs(data, data.validation)) == 3 + 3 + 29
  same = dataclasses.replace(data, train=data.validation)  # one name for both
  assert len(pipeline.read_pairs(same, same.validation)) == 3 + 3 + 29 < len([*open_corpus(same, same.train)])
  tokenizer = pipeline.learn_tokenizer(data, 300)
  [number] = {tokens[1] for tokens in tokenizer.encode_batch(["<2de> big", "<2de> x y", "<2de>"])}
  assert tokenizer.pieces([number]) == ["<2de>"] and tokenizer.decode(tokenizer.encode("a <2de> b")) == "a <2de> b"
  rows = pipeline.packed_rows(data, data.train, tokenizer).rows
  assert (rows[:, SOURCE] == number).sum() == directions(open_corpus(data, data.train)).total() - sum(
    count for (tag, *_), count in directions(open_corpus(data, data.train)).items() if tag != "<2de>"
  )
  with pytest.raises(InputError, match=r"config\.data\.temperature is 5\.0"):
    DataConfig(corpus=Corpus.TEXT, temperature=5.0)
  with pytest.raises(InputError, match=r"config\.data\.tags is True"):
    DataConfig(tags=True)


def test_a_line_without_a_tag_of_the_model_is_told():
  data = DataConfig(
    corpus=Corpus.TEXT, train="a:en-de;b:en+fr*2;c", source_language="en", target_language="cs", tags=True
  )
  tags = tags_of(data)
  assert tags == ["<2de>", "<2fr>", "<2en>", "<2cs>"]
  assert tags_of(DataConfig(corpus=Corpus.TEXT, train="a")) == []
  tokenizer, warnings = SentencePieceTokenizer.learn(["abc abd bcd"] * 5, 280, symbols=tags), []
  lines = ["<2de> abc", "abc", " ", "<2it> abc", "a <2de> abc", "<2cs> abd"]
  found, error = parts(lines, tokenizer, 40, SPLIT, 7, warnings.append, tags)
  assert error is None and [len(line) for line in found] == [1, 1, 0, 1, 1, 1]
  assert [(warning.line, warning.what) for warning in warnings] == [
    (number, "begins with none of <2de>, <2fr>, <2en>, <2cs>: its translation may be in any language")
    for number in (8, 10, 11)
  ]


@pytest.mark.parametrize("tag", ["<2de>", "<2pt-BR>"])
def test_each_part_of_a_long_line_has_the_tag(tag):
  tokenizer = SentencePieceTokenizer.learn(["abc abd bcd"] * 5, 280, symbols=[tag])
  text, warnings = f"{tag} " + "abc abd. " * 9, []
  [found], error = parts([text], tokenizer, 12, SPLIT, 1, warnings.append, [tag])
  decoded = [tokenizer.decode(tokens) for tokens in found]
  assert error is None and len(found) > 2 and len(warnings) == 1 and max(map(len, found)) <= 12
  assert all(part.startswith(f"{tag} ") for part in decoded)
  assert " ".join(divided(part)[1] for part in decoded).split() == divided(text)[1].split()
  [plain], _ = parts([text], tokenizer, 12, SPLIT, 1, warnings.append, [])
  assert not all(tokenizer.decode(tokens).startswith(f"{tag} ") for tokens in plain)


def test_a_tag_alone_is_an_empty_line():
  """Such lines are what the documented command makes of empty ones; training leaves empty sources without a tag."""
  tokenizer, warnings = SentencePieceTokenizer.learn(["abc abd bcd"] * 5, 280, symbols=["<2de>"]), []
  lines = ["<2de> ", "<2de>", "<2de>   ", "", "<2de> a"]
  found, error = parts(lines, tokenizer, 40, SPLIT, 1, warnings.append, ["<2de>"])
  assert error is None and [len(line) for line in found] == [0, 0, 0, 0, 1] and not warnings
  found, _ = parts(lines, tokenizer, 40, SPLIT, 1, warnings.append, [])  # a model without tags reads it as text
  assert [len(line) for line in found] == [1, 1, 1, 0, 1]


def test_a_long_line_with_something_like_a_tag_is_split_as_text():
  """What is no tag of the model may be longer than a part."""
  tokenizer, warnings = SentencePieceTokenizer.learn(["abc abd bcd"] * 5, 280, symbols=["<2de>"]), []
  [found], error = parts([f"<2{'qx7' * 20}> abc abd"], tokenizer, 32, SPLIT, 1, warnings.append, ["<2de>"])
  assert error is None and len(found) > 1 and max(map(len, found)) <= 32 and len(warnings) == 2


def test_a_text_that_the_user_names_has_each_pair_once(texts):
  """Also the training text, whose pairs are repeated by the temperature in training."""
  prefix = f"{texts}/big:en-fr;{texts}/small:en-de"
  data = DataConfig(corpus=Corpus.TEXT, train=prefix, tags=True, temperature=5.0)
  pairs = pipeline.read_text_pairs(data, prefix)
  assert len(pairs) == len(set(pairs)) == 29 + 3 < len([*open_corpus(data, prefix)])
  assert pipeline.read_text_pairs(data, prefix, 7) == pairs[:7]


def test_the_loss_of_validation_is_of_each_pair_once(texts):
  """Also where validation has the name of the training text."""
  data = DataConfig(corpus=Corpus.TEXT, train=f"{texts}/big", validation=f"{texts}/big", tags=True, temperature=5.0)
  read = []
  task = dataclasses.replace(TASK, packed_rows=lambda config, which, _: read.append((config.data.temperature, which)))
  with pytest.raises(AttributeError):  # there are no rows
    Evaluator(Config(data=data), task, data.validation, SentencePieceTokenizer.learn(["abc de"], 273))
  assert read == [(1.0, data.validation)]


def test_the_directions_of_a_config():
  data = DataConfig(corpus=Corpus.TEXT, train="x:fr-en;y;z:en+fr*2", target_language="cs", tags=True)
  assert directions_of(data) == [("fr", "en"), ("en", "cs"), ("en", "fr")]
  assert directions_of(DataConfig(train="x:fr-en")) == [("en", "de")]


@pytest.mark.parametrize(
  ("text", "empty"), [("", True), (" ", True), ("<2de>", True), ("<2de> ", True), ("<2xx>", False), ("<2de> a", False)]
)
def test_a_source_of_one_of_the_models_tags_alone_is_empty(text, empty):
  """Any other tag is text, and the translation has its warning."""
  assert is_empty(text, ["<2de>", "<2fr>"]) == empty
  assert is_empty(text, []) == (not text.strip())

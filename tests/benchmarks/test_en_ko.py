"""benchmarks/en_ko.py: what is held out, and what counts as a repetition, against cases by hand."""

import lzma

import pytest


@pytest.fixture
def en_ko(program):
  return program("en_ko")


def test_nothing_of_the_test_text_is_in_the_training_text(en_ko, tmp_path):
  def side(language, names):
    return "".join(f"{language} {name}\n" for name in names)

  for corpus in en_ko.CORPORA:
    folder = tmp_path / "data" / f"{corpus}_en-ko"
    folder.mkdir(parents=True)
    for name, lines in (("train", [number % 397 for number in range(800)]), ("valid", [1, 2, 1000])):
      for language in en_ko.LANGUAGES:
        (folder / f"{name}.{language}.xz").write_bytes(lzma.compress(side(language, lines).encode()))
  en_ko.write_texts(tmp_path / "data", en_ko.Texts(tmp_path / "text", en_ko.LANGUAGES, en_ko.CORPORA))
  for corpus in en_ko.CORPORA:
    for language in en_ko.LANGUAGES:
      train, test, valid = (
        (tmp_path / "text" / f"{corpus}.{name}.{language}").read_text().splitlines()
        for name in ("train", "test", "valid")
      )
      assert (len(test), len(valid)) == (100, 3)
      assert not set(train) & {*test, *valid}
      assert {*train, *test, *valid} == {f"{language} {number}" for number in [*range(397), 1000]}


def test_blocks_are_evenly_spaced(en_ko):
  corpus = [en_ko.Pair(str(line), str(line)) for line in range(20_000)]
  found = [int(pair.source) for pair in en_ko.held_out(corpus)["test"]]
  assert found == [2000 * block + 970 + line for block in range(10) for line in range(60)]
  assert len(en_ko.held_out(corpus)["train"]) == 19_400


@pytest.mark.parametrize(
  ("line", "repeats"),
  [
    ("파이프, 파이프, 파이프, 파이프, 등", True),
    ("파이프, 파이프, 파이프, 등", False),
    ("hahahaha", True),
    ("ha ha ha", False),
    ("..................", False),
    ("aaaa", False),
    ("a" * 8, True),
    ("1 2 3 4 5", False),
    (" ".join(["on the way"] * 4) + " ", True),
  ],
)
def test_repetitions(en_ko, line, repeats):
  assert en_ko.repeats(line) == repeats


def test_a_repetition_of_the_reference_does_not_count(en_ko):
  assert en_ko.repeating(["hahahaha", "hahahaha", "a", "b"], ["hahahaha", "c", "d", "e"]) == 0.25


def test_a_recipe_reads_everyday_sentences_more_often_but_not_before(en_ko, tmp_path):
  texts = en_ko.Texts(tmp_path, en_ko.LANGUAGES, en_ko.CORPORA)
  assert en_ko.own_keys("before", texts) == ("model.dropout=0.1", "train.steps=2000")
  [train] = en_ko.own_keys("longer", texts)
  names = ["pydocs", "djangodocs", "gnomehelp", "comprehensiverust", "tatoeba"]
  assert train == "data.train=" + ";".join(f"{tmp_path}/{name}.train" for name in names) + "*3"

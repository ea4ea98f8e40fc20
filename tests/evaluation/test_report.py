"""Reports against sacreBLEU's own functions, sums done by hand, and what a comparison must say in plain cases."""

import hashlib
import json
import random
import re

import numpy as np
import pytest
import sacrebleu

from transformer_jax.evaluation import report
from transformer_jax.evaluation.report import Text, build_report, compare, content_hash
from transformer_jax.runtime.errors import InputError

REFERENCES = ["Ein Mann reitet ein rot-weißes Pferd.", "Zwei Hunde spielen im Schnee.", "Die Frau liest."]
TRANSLATIONS = ["Ein Mann reitet auf dem rot-weißen Pferd.", "zwei Hunde spielen im Schnee.", "Die Frau liest."]
DE = Text("out.de", TRANSLATIONS), Text("test.de", REFERENCES)


def noisy(lines, share, seed):
  """Each word replaced with that probability."""
  generator = random.Random(seed)
  return [" ".join("falsch" if generator.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture(scope="module")
def many():
  generator = random.Random(0)
  words = [f"wort{i}" for i in range(17)]
  return [" ".join(generator.choices(words, k=generator.randint(5, 11))) for _ in range(101)]


class TestScores:
  def test_are_sacrebleus(self):
    found = build_report(*DE)["scores"]
    assert found["bleu"]["score"] == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert found["chrf"]["score"] == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert found["ter"]["score"] == sacrebleu.corpus_ter(TRANSLATIONS, [REFERENCES]).score

  def test_have_their_signatures(self):
    found = build_report(*DE, tokenize="intl", lowercase=True)["scores"]
    version = f"version:{sacrebleu.__version__}"
    assert found["bleu"]["signature"] == f"nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|{version}"
    assert found["chrf"]["signature"] == f"nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|{version}"
    assert found["ter"]["signature"] == f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|{version}"

  def test_ter_by_hand(self):
    """One word too many and two replaced, of 6 + 5 + 3; that a letter is small does not count."""
    assert build_report(*DE)["scores"]["ter"]["score"] == pytest.approx(100 * 3 / 14)

  def test_no_ter_of_very_long_lines(self):
    long = Text("long.de", ["wort " * 1001, *TRANSLATIONS[1:]])
    for sides in ((long, DE[1]), (DE[0], Text("test.de", long.lines))):
      found = build_report(*sides, other=DE[0])
      assert found["scores"]["ter"] is None and found["scores"]["chrf"]["score"] > 0
      assert found["comparison"]["scores"]["ter"] is None and found["comparison"]["scores"]["bleu"]
      for what in ("computed", "compared"):
        assert re.search(rf"^TER +not {what}, as a line has more than 1,000 words$", report.text(found), re.MULTILINE)
    found = build_report(*DE, other=long)
    assert found["scores"]["ter"] and found["comparison"]["scores"]["ter"] is None
    assert re.search("^TER +not compared, as a line has more", report.text(found), re.MULTILINE)

  @pytest.mark.parametrize(("tokenize", "is_warned"), [("13a", True), ("none", False)])
  def test_tell_of_text_that_looks_tokenised(self, caplog, tokenize, is_warned):
    """sacreBLEU needs 100 such lines."""
    text = Text("a", ["a b ."] * 100)
    build_report(text, text, tokenize=tokenize)
    assert ("tokenized period" in caplog.text) == is_warned

  def test_compounds_of_tokenised_text_are_split_in_it_as_it_is(self):
    """`Wagen.` is one word: 4/5, 3/4, 2/3 and 1/2 of the n-grams are right, and a word is missing."""
    sides = Text("a", ["ein rot-weißer Wagen."]), Text("r", ["ein rot-weißer Wagen ."])
    found = build_report(*sides, languages=("en", "de"), tokenize="none")["scores"]["compound_split_bleu"]
    assert found["score"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25 * np.exp(1 - 6 / 5))
    assert "|tok:compounds|" in found["signature"]

  def test_exact_match(self):
    assert build_report(*DE)["exact_match"] == pytest.approx(1 / 3)

  def test_compounds_only_for_german(self):
    assert build_report(*DE)["scores"]["compound_split_bleu"] is None
    assert build_report(*DE, languages=("de", "en"))["scores"]["compound_split_bleu"] is None
    assert build_report(*DE, languages=("en", "de"))["scores"]["compound_split_bleu"]["score"] > 0


class TestComparison:
  def test_equal_translations_do_not_differ(self, many):
    ours = Text("a", noisy(many, 0.2, seed=1))
    for found in compare(ours, ours, Text("r", many))["scores"].values():
      assert (found["difference"], found["p_value"]) == (0, 1)

  def test_equally_good_translations_do_not_differ(self, many):
    ours, others = Text("a", noisy(many, 0.2, seed=1)), Text("b", noisy(many, 0.2, seed=2))
    for found in compare(ours, others, Text("r", many))["scores"].values():
      assert found["p_value"] > 0.05

  def test_much_better_ones_do(self, many):
    ours, others = Text("a", noisy(many, 0.1, seed=1)), Text("b", noisy(many, 0.4, seed=2))
    found = compare(ours, others, Text("r", many))["scores"]
    assert {name: value["p_value"] < 0.01 for name, value in found.items()} == dict.fromkeys(
      ("bleu", "chrf", "ter"), True
    )
    assert found["bleu"]["difference"] > 0 and found["chrf"]["difference"] > 0 and found["ter"]["difference"] < 0

  def test_tells_the_others_scores_and_how(self, many):
    ours, others = Text("a", noisy(many, 0.1, seed=1)), Text("b", noisy(many, 0.2, seed=2))
    found = compare(ours, others, Text("r", many), tokenize="none", lowercase=True, resamples=13)
    assert (found["file"], found["resamples"], found["sha256"]) == ("b", 13, content_hash(others.lines))
    bleu = sacrebleu.corpus_bleu(others.lines, [many], tokenize="none", lowercase=True, force=True)
    assert found["scores"]["bleu"]["score"] == bleu.score
    assert found["scores"]["bleu"]["signature"].startswith("nrefs:1|bs:13|seed:12345|case:lc|eff:no|tok:none|")

  def test_is_the_same_each_time(self, many):
    ours, others = Text("a", noisy(many, 0.2, seed=1)), Text("b", noisy(many, 0.25, seed=2))
    first, second = (compare(ours, others, Text("r", many)) for _ in range(2))
    assert first == second
    assert any(0.001 < found["p_value"] < 1 for found in first["scores"].values())

  def test_needs_as_many_sentences(self):
    with pytest.raises(InputError, match="2 translations but 3 references"):
      compare(DE[0], Text("b", TRANSLATIONS[:2]), DE[1])


class TestReport:
  def test_hash_is_that_of_the_file(self):
    assert content_hash(["a", "b ß"]) == hashlib.sha256("a\nb ß\n".encode()).hexdigest()

  def test_hash_changes_with_the_content(self):
    contents = [["a", "b"], ["a b"], ["ab", ""], ["", "ab"], ["b", "a"], ["a", "b", ""], ["a", "b "]]
    assert len({content_hash(lines) for lines in contents}) == len(contents)

  def test_json_has_all_keys(self):
    plain = build_report(*DE)
    run = {"seed": 0, "step": 7}
    given = {"source": Text("test.en", ["a", "b", "c"]), "other": DE[1], "languages": ("en", "de")}
    full = build_report(*DE, **given, run=run, seconds=1.23456)
    keys = {"scores", "exact_match", "test_set", "translations", "comparison", "run", "versions", "seconds"}
    for found in (plain, full):
      assert found.keys() == keys
      assert found["scores"].keys() == {"bleu", "chrf", "ter", "compound_split_bleu"}
      assert found["test_set"].keys() == {"direction", "sentences", "source", "reference"}
      assert found["versions"].keys() == {"transformer_jax", "jax", "sacrebleu", "sacremoses"}
      assert json.loads(json.dumps(found)) == found
    assert full["test_set"] == {
      "direction": "en-de",
      "sentences": 3,
      "source": {"file": "test.en", "sha256": content_hash(["a", "b", "c"])},
      "reference": {"file": "test.de", "sha256": content_hash(REFERENCES)},
    }
    assert full["versions"]["sacrebleu"] == sacrebleu.__version__
    assert (full["run"], full["seconds"]) == (run, 1.235)
    assert plain["comparison"] is plain["run"] is plain["seconds"] is plain["test_set"]["source"] is None

  def test_compares_with_the_words_and_the_case_of_its_scores(self):
    options = {"tokenize": "char", "lowercase": True}
    ours, theirs, reference = (Text(name, [line] * 3) for name, line in (("a", "A b"), ("b", "A B"), ("r", "a b")))
    found = build_report(ours, reference, other=theirs, **options)
    assert found["comparison"] == compare(ours, theirs, reference, **options)
    assert found["comparison"]["scores"]["chrf"]["score"] == found["scores"]["chrf"]["score"] == pytest.approx(100)

  def test_text_tells_what_json_does(self):
    found = build_report(*DE, other=DE[1], languages=("en", "de"), run={"seed": 0, "averaged_steps": None}, seconds=1.2)
    text = report.text(found)
    for score in (*found["scores"].values(), *found["comparison"]["scores"].values()):
      assert score["signature"] in text and f"{score['score']:.2f}" in text
    for told in (
      found["scores"]["compound_split_bleu"]["meaning"],
      "3 sentences, en-de",
      content_hash(REFERENCES),
      content_hash(TRANSLATIONS),
      "paired bootstrap resampling, 1,000 times",
      "p = ",
      "seed 0\n",
      f"sacrebleu {sacrebleu.__version__}",
      "1.2 seconds",
    ):
      assert told in text
    ours, theirs = found["scores"]["bleu"]["score"], found["comparison"]["scores"]["bleu"]
    numbers = f"difference {ours - theirs['score']:+.2f}, p = {theirs['p_value']:.3f}"
    assert ours < 90 and f" {ours:.2f}  against 100.00, {numbers}  nrefs" in text

  def test_text_of_an_ensemble(self):
    run = {"seed": [0, 1], "step": 7, "averaged_steps": [[5, 7], None]}
    text = report.text(build_report(*DE, run=run))
    assert "\nrun            seed 0 + 1, step 7, averaged_steps (5 + 7) + None\n" in text

  def test_text_of_what_is_not_known(self):
    text = report.text(build_report(Text(None, TRANSLATIONS), DE[1]))
    assert "not written" in text and "None" not in text and "Table 2" not in text

  def test_bad_input(self):
    with pytest.raises(InputError, match="3 translations but 2 references"):
      build_report(DE[0], Text("r", REFERENCES[:2]))
    with pytest.raises(InputError, match="no sentences"):
      build_report(Text("a", []), Text("r", []))

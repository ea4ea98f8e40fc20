"""The flags of cleaning, which `clean` and `prepare` share: each leaves out the pair that breaks its rule."""

import argparse

import pytest

from tests import prepared_folder
from tests.example_run import write_pairs
from transformer_jax.__main__ import main
from transformer_jax.commands import rules
from transformer_jax.data import beam_pipeline
from transformer_jax.data.cleaning import Unit
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.runtime.errors import InputError

PAIRS = [
  ("the small dog runs over the meadow", "der kleine Hund läuft über die Wiese"),
  ("we live in an old house", "wir wohnen in einem alten Haus"),
  ("the children play in the garden", "die Kinder spielen im Garten"),
]
SHORT = ("the house", "Haus")
LONG = ("yes we can see the old house from here", "wir sehen das alte Haus")
UNEQUAL = ("the old man reads his newspaper", "er liest")
A_THIRD_LATIN = ("the dog is very small", "der Hund ist маленькая собака очень")

# Flags, the pair that they leave out, and the reason that is told.
RULES = [
  (["--min-length", "2"], SHORT, "fewer than 2 words"),
  (["--unit", "characters", "--min-length", "7"], SHORT, "fewer than 7 characters"),
  (["--max-length", "7"], LONG, "more than 7 words"),
  (["--unit", "characters", "--max-length", "37"], LONG, "more than 37 characters"),
  (["--max-ratio", "3"], UNEQUAL, "one side at least 3 times as long as the other"),
  (["--unit", "characters", "--max-ratio", "3.5"], UNEQUAL, "one side at least 3.5 times as long as the other"),
  (["--no-copies"], ("This is the same text", "this is  THE same text"), "both sides equal"),
  (
    ["--scripts", "Latin", "Latin"],
    ("the dog is very small", "собака очень маленькая"),
    "letters of another script than Latin and Latin",
  ),
  (
    ["--identify"],
    ("der Hund schläft unter dem Tisch", "die Katze schläft auf dem Sofa"),
    "another language than en and de",
  ),
  (["--duplicates", "pairs"], PAIRS[1], "the pair occurred before"),
  (["--duplicates", "sources"], (PAIRS[1][0], "wir leben in einem alten Gebäude"), "the source occurred before"),
  (["--duplicates", "targets"], ("we live in an ancient building", PAIRS[1][1]), "the target occurred before"),
]


def write(folder, pairs):
  return write_pairs(folder / "in", pairs)


@pytest.mark.parametrize(("flags", "pair", "reason"), RULES, ids=[" ".join(flags) for flags, _, _ in RULES])
def test_clean_leaves_out_the_pair_that_breaks_the_rule_of_a_flag(tmp_path, capfd, flags, pair, reason):
  if "--identify" in flags:
    pytest.importorskip("py3langid")
  command = ["clean", "--data", write(tmp_path, [*PAIRS, pair]), "--output"]
  assert main([*command, str(tmp_path / "all")]) == 0
  assert capfd.readouterr().err.splitlines()[0] == "kept 4 of 4 pairs (100.0%)"
  assert main([*command, str(tmp_path / "fitting"), *flags]) == 0
  assert capfd.readouterr().err.splitlines() == [
    "kept 3 of 4 pairs (75.0%)",
    "  0 left out: an empty side",
    f"  1 left out: {reason}",
  ]
  for side, language in enumerate(("en", "de")):
    assert (tmp_path / f"fitting.{language}").read_text().splitlines() == [each[side] for each in PAIRS]


@pytest.mark.parametrize(("share", "kept"), [([], 3), (["--script-share", "0.34"], 3), (["--script-share", "0.33"], 4)])
def test_a_share_of_letters_in_the_script_is_enough(tmp_path, capfd, share, kept):
  command = ["clean", "--data", write(tmp_path, [*PAIRS, A_THIRD_LATIN]), "--output", str(tmp_path / "out")]
  assert main([*command, "--scripts", "Latin", "Latin", *share]) == 0
  assert capfd.readouterr().err.splitlines() == [
    f"kept {kept} of 4 pairs ({kept / 4:.1%})",
    "  0 left out: an empty side",
    f"  {4 - kept} left out: letters of another script than Latin and Latin",
  ]


def test_the_languages_that_are_identified_are_those_of_the_corpus(tmp_path, capfd):
  """Here that is German with English."""
  pytest.importorskip("py3langid")
  for ending, side in (("de", 1), ("en", 0)):
    (tmp_path / f"in.{ending}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
  command = ["clean", "--data", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--languages", "de", "en"]
  assert main([*command, "--identify"]) == 0
  assert capfd.readouterr().err.splitlines()[::2] == [
    "kept 3 of 3 pairs (100.0%)",
    "  0 left out: another language than de and en",
  ]


@pytest.fixture
def prepare(tmp_path, monkeypatch):
  """Runs `prepare` on these pairs with some flags, without Apache Beam, and returns its status."""
  monkeypatch.setattr(beam_pipeline, "require_beam", lambda: None)
  monkeypatch.setattr(beam_pipeline, "run", prepared_folder.run)
  tokenizer = SentencePieceTokenizer.learn([side for pair in PAIRS for side in pair], 290)
  (tmp_path / "own.model").write_bytes(tokenizer.to_bytes())

  def run(name, pairs, *flags):
    text = f"--config.data.train={write(tmp_path, pairs)}"
    keys = ["--config.data.corpus=text", f"--config.data.tokenizer={tmp_path / 'own.model'}", text]
    return main(["prepare", *keys, "--config.model.vocab_size=290", f"--output={tmp_path / name}", *flags])

  return run


@pytest.mark.parametrize(
  ("flags", "refused"),
  [([], True), (["--min-length=2"], False), (["--max-length=9"], False), (["--max-ratio=2"], False)],
)
def test_a_unit_without_a_length_is_refused(flags, refused):
  parser = argparse.ArgumentParser()
  rules.add_rule_arguments(parser)
  args = parser.parse_args(["--unit=characters", *flags])
  if refused:
    with pytest.raises(InputError, match="--unit is characters, but must be left out without --min-length"):
      rules.rules_of(args, ("en", "de"))
  else:
    assert rules.rules_of(args, ("en", "de")).unit is Unit.CHARACTERS


def test_prepare_counts_each_pair_under_the_rule_that_it_breaks(prepare, capfd):
  """With many flags at once, as each pair breaks one rule."""
  pytest.importorskip("py3langid")
  chosen = [rule for rule in RULES if "--unit" not in rule[0] and rule[0][1:] not in (["sources"], ["targets"])]
  pairs = [*PAIRS, *(pair for _, pair, _ in chosen)]
  assert prepare("all", pairs) == 0
  assert f"kept {len(pairs)} of {len(pairs)} pairs (100.0%)\n" in capfd.readouterr().err
  assert prepare("fitting", pairs, *(flag for flags, _, _ in chosen for flag in flags)) == 0
  said = capfd.readouterr().err
  assert f"kept 3 of {len(pairs)} pairs (30.0%)\n" in said and said.count(" left out: ") == 1 + len(chosen) == 8
  for _, _, reason in chosen:
    assert f"\n  1 left out: {reason}\n" in said


@pytest.mark.parametrize(
  "flags", [["--unit=characters", "--min-length=7"], ["--duplicates=sources"], ["--duplicates=targets"]]
)
def test_prepare_takes_the_unit_and_the_duplicates_of_the_flags(prepare, capfd, flags):
  [(_, pair, reason)] = [rule for rule in RULES if rule[0] == " ".join(flags).replace("=", " ").split()]
  assert prepare("out", [*PAIRS, pair], *flags) == 0
  said = capfd.readouterr().err
  assert "kept 3 of 4 pairs (75.0%)\n" in said and f"\n  1 left out: {reason}\n" in said

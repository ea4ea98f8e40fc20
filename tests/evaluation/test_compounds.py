"""BLEU with compounds split, by hand and by the script's own rules."""

import pytest
import sacrebleu

from transformer_jax.evaluation.compounds import _moses_tokenizer, compound_split_bleu, split_compounds


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("rot-weiß", "rot ##AT##-##AT## weiß"),
    ("das rot-weiß-blaue T-Shirt", "das rot ##AT##-##AT## weiß ##AT##-##AT## blaue T ##AT##-##AT## Shirt"),
    ("A-B-C", "A ##AT##-##AT## B-C"),
    ("Nord- und Süd -teil - so", "Nord- und Süd -teil - so"),
    ("", ""),
  ],
)
def test_compounds_are_split_as_by_the_scripts_regular_expression(line, expected):
  assert split_compounds(line) == expected


def test_bleu_by_hand():
  """`ein rot ##AT##-##AT## weißes auto`: 4/5, 3/4, 2/3 and 1/2 of the n-grams are right."""
  value, signature = compound_split_bleu(["ein rot-weißes auto"], ["ein rot-weißes haus"])
  assert value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
  assert signature == (
    f"nrefs:1|case:mixed|eff:no|tok:moses-de-unicode-compounds|smooth:none|version:{sacrebleu.__version__}"
  )


def test_bleu_is_not_smoothed():
  assert compound_split_bleu(["ein rotes auto"], ["ein rotes haus"])[0] == 0


def test_bleu_is_cased():
  assert compound_split_bleu(["EIN MANN GEHT NUN."], ["ein mann geht nun."])[0] == 0


def test_a_short_translation_is_punished():
  """5 words against 6: exp(1 - 6 / 5)."""
  value, _ = compound_split_bleu(["ein mann geht nun weg"], ["ein mann geht nun weg !"], tokenized=True)
  assert value == pytest.approx(100 * 0.8187307530779818)


@pytest.mark.parametrize(
  ("plain", "tokenized"),
  [
    ('Er sagte: "Geht\'s?"', "Er sagte : &quot; Geht &apos; s ? &quot;"),
    ("Am 5. Mai kam Dr. Müller, z.B. mit 1.000,50 € usw. ", "Am 5. Mai kam Dr. Müller , z.B. mit 1.000,50 € usw ."),
    ("Im Haus [Nr. 7] wohnt R&D...", "Im Haus &#91; Nr. 7 &#93; wohnt R &amp; D ..."),
    ("„Ein rot-weißes Auto.“", "„ Ein rot ##AT##-##AT## weißes Auto . “"),
  ],
)
def test_text_of_moses_and_plain_text_are_equal(plain, tokenized):
  assert compound_split_bleu([plain], [tokenized])[0] == pytest.approx(100)
  assert compound_split_bleu([tokenized], [plain])[0] == pytest.approx(100)


def test_unicode_punctuation_is_that_of_the_authors_reference_but_for_the_opening_quotation_mark():
  """Against 15 words like those of `newstest2014.tok.de`: “ ’ … become ASCII, and „ stays."""
  reference = ["Er sagte , dass &quot; das Auto &quot; nicht kommt ... und geht &apos; s"]
  written = "Er sagte, dass „das Auto“ nicht kommt … und geht\u2019s"
  assert compound_split_bleu([written.replace("„", '"')], reference)[0] == pytest.approx(100)
  value, _ = compound_split_bleu([written], reference)
  assert value == pytest.approx(100 * (14 / 15 * 12 / 14 * 10 / 13 * 8 / 12) ** 0.25)


def test_text_that_is_tokenized_is_not_touched():
  """`Wagen.` is one word here."""
  value, signature = compound_split_bleu(["ein rot-weißer Wagen."], ["ein rot-weißer Wagen ."], tokenized=True)
  assert value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25 * 0.8187307530779818)
  assert "|tok:compounds|" in signature


def test_moses_signs_are_not_escaped():
  assert _moses_tokenizer()("Haus & Hof <b>, Hof") == "Haus & Hof < b > , Hof"

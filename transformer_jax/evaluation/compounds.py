"""The paper's BLEU for English to German: tokenised, with German compounds split."""

import re
from collections.abc import Callable, Sequence

from transformer_jax.evaluation.scores import check_counts

_COMPOUND = re.compile(r"(\S)-(\S)")
_COMPOUND_MARK = " ##AT##-##AT## "
_LAST_PERIOD = re.compile(r"(?<=[^\s.])\.$")


def compound_split_bleu(
  translations: Sequence[str], references: Sequence[str], *, tokenized: bool = False
) -> tuple[float, str]:
  """Computes tokenised BLEU with German compounds split, the paper's BLEU for English to German.

  The steps are those of tensor2tensor's `get_ende_bleu.sh`: Moses'
  `replace-unicode-punctuation.perl`, which the script has since April 2018, and
  `tokenizer.perl -l de`; compound splitting (`split_compounds`); `multi-bleu.perl`,
  which is BLEU of 1 to 4 words, cased and without smoothing. The score compares with
  Table 2 and with scores from the same steps alone. Three points can differ:

  - sacremoses, a port of Moses' scripts to Python, replaces and tokenises, on both
    sides. `tokenizer.perl` gave the same words in 8,000 German sentences. A
    full-width 1, of which Moses makes a quotation mark by mistake, is a 1 here.
  - The script takes a tokenised reference. That of the authors, `newstest2014.tok.de`,
    has ASCII quotation marks where WMT's text has „ and “, of which the first step
    replaces only “. To compare with Table 2, give their file as the reference.
  - Moses' escapes (`&quot;`) and splits in the text are undone first, not made twice.

  Args:
    translations, references: one string for each sentence.
    tokenized: whether both are already tokenised, so that only compounds are split.

  Returns:
    The score, 0 to 100, and a signature in sacreBLEU's form.

  Raises:
    InputError: there are no sentences, or the counts differ.
  """
  from sacrebleu.metrics.bleu import BLEU

  check_counts(translations, references)
  tokenizer = (lambda line: line) if tokenized else _moses_tokenizer()
  joined = [[line.replace(_COMPOUND_MARK, "-") for line in side] for side in (translations, references)]
  sides = [[split_compounds(tokenizer(line)) for line in side] for side in joined]
  bleu = BLEU(tokenize="none", smooth_method="none", force=True)
  value = bleu.corpus_score(sides[0], [sides[1]]).score
  signature = bleu.get_signature()
  signature.update("tok", "compounds" if tokenized else "moses-de-unicode-compounds")
  return value, str(signature)


def split_compounds(line: str) -> str:
  """Splits compounds: `rot-weiß` becomes `rot ##AT##-##AT## weiß`.

  Of two hyphens around one character only the first is split, as in the script:
  `A-B-C` becomes `A ##AT##-##AT## B-C`.
  """
  return _COMPOUND.sub(rf"\1{_COMPOUND_MARK}\2", line)


def _moses_tokenizer() -> Callable[[str], str]:
  """Moses' replacement of Unicode punctuation and German tokenizer, without its escapes, which change no score."""
  from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

  moses, unescape = MosesTokenizer(lang="de"), MosesDetokenizer(lang="de").unescape_xml
  replace = MosesPunctNormalizer().replace_unicode_punct

  def tokenize(line: str) -> str:
    # Moses separates the last period even from an abbreviation or a number; sacremoses does not.
    line = _LAST_PERIOD.sub(" .", replace(unescape(line)).strip())
    return " ".join(moses.tokenize(line, escape=False))

  return tokenize

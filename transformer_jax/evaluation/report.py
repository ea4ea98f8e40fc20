"""The report of a score: the numbers, and all that says which other numbers they compare with."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from transformer_jax.evaluation import scores
from transformer_jax.runtime.versions import versions

# Koehn 2004 took so many, and sacreBLEU does.
RESAMPLES = 1000

_COMPOUNDS = "compound_split_bleu"
_TITLES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER", _COMPOUNDS: "BLEU, Table 2"}
_COMPOUNDS_MEANING = (
  "tokenised BLEU with German compounds split, as tensor2tensor's get_ende_bleu.sh; comparable with Table 2 only"
)


class Text(NamedTuple):
  """Sentences of a file.

  Attributes:
    name: of the file; None where the sentences were not written.
    lines: the sentences.
  """

  name: str | None
  lines: Sequence[str]


def build_report(
  translations: Text,
  reference: Text,
  *,
  source: Text | None = None,
  other: Text | None = None,
  languages: tuple[str, str] | None = None,
  tokenize: str = "13a",
  lowercase: bool = False,
  run: dict[str, Any] | None = None,
  seconds: float | None = None,
) -> dict[str, Any]:
  """Scores translations, with what is to be told beside the scores.

  Args:
    translations: what is scored.
    reference: as many sentences.
    source: what was translated.
    other: other translations of the same sentences, to be compared with.
    languages: source and target, such as `en` and `de`. Only where the target
      is `de` is there a `compound_split_bleu`.
    tokenize: as of `scores.score`; with `none` compounds are split in the text as it is.
    lowercase: as of `scores.score`.
    run: seed, step and search of the model, as JSON values.
    seconds: that the translation took.

  Returns:
    JSON values: `scores` (of each the `score` and its `signature`; no TER where a line is very long),
    `exact_match`, `test_set`, `translations`, `comparison`, `run`, `versions`
    and `seconds`; what is not known is None.

  Raises:
    InputError: no sentences, unequal counts, or a tokenisation that sacreBLEU does not have.
  """
  scores.check_counts(translations.lines, reference.lines)
  return {
    "scores": _scores(translations, reference, languages, tokenize, lowercase),
    "exact_match": scores.exact_match(translations.lines, reference.lines),
    "test_set": {
      "direction": "-".join(languages) if languages else None,
      "sentences": len(reference.lines),
      "source": _described(source),
      "reference": _described(reference),
    },
    "translations": _described(translations),
    "comparison": other and compare(translations, other, reference, tokenize=tokenize, lowercase=lowercase),
    "run": run,
    "versions": versions("jax", "sacrebleu", "sacremoses"),
    "seconds": None if seconds is None else round(seconds, 3),
  }


def _scores(
  translations: Text, reference: Text, languages: tuple[str, str] | None, tokenize: str, lowercase: bool
) -> dict[str, Any]:
  metrics = scores.metrics_by_name(tokenize, lowercase, warn_if_tokenized=tokenize != "none")
  found: dict[str, Any] = {}
  too_long = scores.too_long_for_ter(translations.lines, reference.lines)
  for name, metric in metrics.items():
    if name == "ter" and too_long:
      found[name] = None
      continue
    value = metric.corpus_score(translations.lines, [reference.lines]).score
    found[name] = {"score": value, "signature": str(metric.get_signature())}
  found[_COMPOUNDS] = None
  if languages and languages[1] == "de":
    value, signature = scores.compound_split_bleu(translations.lines, reference.lines, tokenized=tokenize == "none")
    found[_COMPOUNDS] = {"score": value, "signature": signature, "meaning": _COMPOUNDS_MEANING}
  return found


def content_hash(lines: Sequence[str]) -> str:
  """SHA-256 of the sentences, each with a line feed: what `sha256sum` says of a plain file of them."""
  digest = hashlib.sha256()
  for line in lines:
    digest.update(f"{line}\n".encode())
  return digest.hexdigest()


def _described(text: Text | None) -> dict[str, Any] | None:
  return text and {"file": text.name, "sha256": content_hash(text.lines)}


def compare(
  translations: Text,
  other: Text,
  reference: Text,
  *,
  tokenize: str = "13a",
  lowercase: bool = False,
  resamples: int = RESAMPLES,
) -> dict[str, Any]:
  """Whether translations differ from others by more than chance, by paired bootstrap resampling (Koehn 2004).

  So many test sets of the same size are drawn from the test set with
  replacement, the same ones for both sides. With D the difference of a score on
  the whole test set and d on such a draw, the p-value is sacreBLEU's: the share
  of the draws in which |d| - mean |d| exceeds |D|, with one counted more among
  both. The draws are the same in every call; `SACREBLEU_SEED` in the environment
  changes them, and the signature tells which they are.

  Args:
    translations: one side.
    other: the other.
    reference: of both.
    tokenize: as of `scores.score`.
    lowercase: as of `scores.score`.
    resamples: test sets that are drawn.

  Returns:
    JSON values; of each score in `scores` that of the other side, by how much
    that of `translations` is higher, the p-value and a signature.

  Raises:
    InputError: no sentences or unequal counts.
  """
  from sacrebleu.significance import PairedTest

  for text in (translations, other):
    scores.check_counts(text.lines, reference.lines)
  metrics = scores.metrics_by_name(tokenize, lowercase)
  if scores.too_long_for_ter(translations.lines, other.lines, reference.lines):
    del metrics["ter"]
  systems = [("other", other.lines), ("translations", translations.lines)]
  found: Any = PairedTest(systems, metrics, [reference.lines], test_type="bs", n_samples=resamples)()
  signatures, results = found
  compared = {}
  for name, title in zip(metrics, signatures, strict=True):  # sacreBLEU has titles of its own, in the same order
    theirs, ours = results[title]
    compared[name] = {
      "score": theirs.score,
      "difference": ours.score - theirs.score,
      # Every draw differs by 0 or more, but sacreBLEU counts only those with more: 1 / 1001 for two equal texts.
      "p_value": 1.0 if ours.score == theirs.score else ours.p_value,
      "signature": str(signatures[title]),
    }
  description = {"method": "paired bootstrap resampling", "resamples": resamples}
  return {"file": other.name, "sha256": content_hash(other.lines), **description, "scores": compared}


def text(report: dict[str, Any]) -> str:
  """What `whole` found, as a person reads it."""
  return "\n".join([*_score_lines(report), *_fact_lines(report), *_comparison_lines(report)])


def _score_lines(report: dict[str, Any]) -> Iterator[str]:
  for name, found in report["scores"].items():
    if found:
      yield f"{_TITLES[name]:<14} {found['score']:6.2f}  {found['signature']}"
      if "meaning" in found:
        yield f"{'':<14} {'':>6}  {found['meaning']}"
    elif name == "ter":
      yield f"{_TITLES[name]:<14} {'':>6}  not computed, as a line has more than {scores.MOST_WORDS_FOR_TER:,} words"
  yield f"{'exact match':<14} {report['exact_match']:6.1%}"


def _fact_lines(report: dict[str, Any]) -> Iterator[str]:
  test_set = report["test_set"]
  direction = f", {test_set['direction']}" if test_set["direction"] else ""
  yield f"{'test set':<14} {test_set['sentences']:,} sentences{direction}"
  described = {"source": test_set["source"], "reference": test_set["reference"], "translations": report["translations"]}
  for role, found in described.items():
    if found:
      yield f"{role:<14} {found['file'] or 'not written'}, sha256 {found['sha256']}"
  if report["run"]:
    yield f"{'run':<14} {', '.join(f'{name} {value}' for name, value in report['run'].items() if value is not None)}"
  yield f"{'versions':<14} {', '.join(f'{name} {version}' for name, version in report['versions'].items())}"
  if report["seconds"] is not None:
    yield f"{'translated in':<14} {report['seconds']:.1f} seconds"


def _comparison_lines(report: dict[str, Any]) -> Iterator[str]:
  comparison = report["comparison"]
  if not comparison:
    return
  yield f"compared with {comparison['file']}, sha256 {comparison['sha256']},"
  yield f"by {comparison['method']}, {comparison['resamples']:,} times"
  for name, found in comparison["scores"].items():
    ours = report["scores"][name]["score"]
    yield (
      f"{_TITLES[name]:<14} {ours:6.2f}  against {found['score']:.2f}, difference {found['difference']:+.2f}, "
      f"p = {found['p_value']:.3f}  {found['signature']}"
    )

"""The report of an evaluation: the scores, and the facts that tell which other scores they compare with."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformer_jax.evaluation import scores
from transformer_jax.evaluation.bootstrap import RESAMPLES, Resampled, resampled
from transformer_jax.evaluation.compounds import compound_split_bleu
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.versions import versions
from transformer_jax.runtime.wording import counted

_COMPOUNDS = "compound_split_bleu"
_TITLES = scores.TITLES | {_COMPOUNDS: "BLEU, Table 2"}
_COMPOUNDS_MEANING = (
  "tokenised BLEU with German compounds split, as tensor2tensor's get_ende_bleu.sh; comparable with Table 2 only"
)


class Text(NamedTuple):
  """The sentences of a file.

  Attributes:
    name: the file's name; None if the sentences were not written.
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
  run: JsonObject | None = None,
  seconds: float | None = None,
) -> JsonObject:
  """Scores translations, and describes the test set and the circumstances.

  Args:
    translations, reference: the sentences to score, and as many references.
    source: the sentences that were translated.
    other: other translations of the same sentences, to compare with.
    languages: source and target, such as `en` and `de`; only for `de` there is a `compound_split_bleu`.
    tokenize, lowercase: as in `scores.score`; with `none` compounds are split in the text as it is.
    run: the seed, step and search of the model, as JSON values.
    seconds: the time that the translation took.

  Returns:
    JSON values, None where something is not known; without TER if a line is very long.

  Raises:
    InputError: there are no sentences, the counts differ, or sacreBLEU does not have the tokenisation.
  """
  scores.check_counts(translations.lines, reference.lines)
  return {
    "scores": _scores(translations, reference, languages, tokenize, lowercase),
    "exact_match": scores.exact_match(translations.lines, reference.lines),
    "test_set": _test_set(source, reference, languages),
    "translations": _described(translations),
    "comparison": other and compare(translations, other, reference, tokenize=tokenize, lowercase=lowercase),
    "run": run,
    "versions": versions("jax", "sacrebleu", "sacremoses"),
    "seconds": None if seconds is None else round(seconds, 3),
  }


def _test_set(source: Text | None, reference: Text, languages: tuple[str, str] | None) -> JsonObject:
  return {
    "direction": "-".join(languages) if languages else None,
    "sentences": len(reference.lines),
    "source": _described(source),
    "reference": _described(reference),
  }


def _scores(
  translations: Text, reference: Text, languages: tuple[str, str] | None, tokenize: str, lowercase: bool
) -> JsonObject:
  metrics = scores.metrics_by_name(tokenize, lowercase, warn_if_tokenized=tokenize != "none")
  found: JsonObject = {}
  too_long = scores.too_long_for_ter(translations.lines, reference.lines)
  for name, metric in metrics.items():
    if name == "ter" and too_long:
      found[name] = None
      continue
    value = metric.corpus_score(translations.lines, [reference.lines]).score
    found[name] = {"score": value, "signature": str(metric.get_signature())}
  found[_COMPOUNDS] = None
  if languages and languages[1] == "de":
    value, signature = compound_split_bleu(translations.lines, reference.lines, tokenized=tokenize == "none")
    found[_COMPOUNDS] = {"score": value, "signature": signature, "meaning": _COMPOUNDS_MEANING}
  return found


def content_hash(lines: Sequence[str]) -> str:
  """SHA-256 of the sentences, each with a line feed: the `sha256sum` of a plain file of them."""
  digest = hashlib.sha256()
  for line in lines:
    digest.update(f"{line}\n".encode())
  return digest.hexdigest()


def _described(text: Text | None) -> JsonObject | None:
  return text and {"file": text.name, "sha256": content_hash(text.lines)}


def compare(
  translations: Text,
  other: Text,
  reference: Text,
  *,
  tokenize: str = "13a",
  lowercase: bool = False,
  resamples: int = RESAMPLES,
) -> JsonObject:
  """Tells whether two systems differ by more than chance, by paired bootstrap resampling (Koehn 2004).

  `bootstrap.resampled` has the draws and the p-value. The other arguments are those of `build_report`.

  Returns:
    JSON values: for each score that of `other`, the difference, the p-value and the signature; None for TER if a line
    is very long.

  Raises:
    InputError: there are no sentences, or the counts differ.
  """
  systems = [other.lines, translations.lines]
  found = resampled(systems, reference.lines, tokenize=tokenize, lowercase=lowercase, resamples=resamples)
  return {
    "file": other.name,
    "sha256": content_hash(other.lines),
    "method": "paired bootstrap resampling",
    "resamples": resamples,
    "scores": {name: _compared(*found[name]) if name in found else None for name in scores.TITLES},
  }


def _compared(theirs: Resampled, ours: Resampled) -> JsonObject:
  """The other system's score, by how much ours is higher, and the p-value."""
  return {
    "score": theirs.score,
    "difference": ours.score - theirs.score,
    "p_value": ours.p_value,
    "signature": theirs.signature,
  }


def text(report: JsonObject) -> str:
  """The result of `build_report` as lines of text."""
  return "\n".join([*_score_lines(report), *_fact_lines(report), *_comparison_lines(report)])


def _score_lines(report: JsonObject) -> Iterator[str]:
  for name, found in report["scores"].items():
    if found:
      yield f"{_TITLES[name]:<14} {found['score']:6.2f}  {found['signature']}"
      if "meaning" in found:
        yield f"{'':<14} {'':>6}  {found['meaning']}"
    elif name == "ter":
      yield f"{_TITLES[name]:<14} {'':>6}  {_no_ter('computed')}"
  yield f"{'exact match':<14} {report['exact_match']:6.1%}"


def _no_ter(what: str) -> str:
  return f"not {what}, as a line has more than {scores.MOST_WORDS_FOR_TER:,} words"


def _fact_lines(report: JsonObject) -> Iterator[str]:
  test_set = report["test_set"]
  direction = f", {test_set['direction']}" if test_set["direction"] else ""
  yield f"{'test set':<14} {counted(test_set['sentences'], 'sentences')}{direction}"
  described = {"source": test_set["source"], "reference": test_set["reference"], "translations": report["translations"]}
  for role, found in described.items():
    if found:
      yield f"{role:<14} {found['file'] or 'not written'}, sha256 {found['sha256']}"
  if report["run"]:
    run = (f"{name} {_together(value)}" for name, value in report["run"].items() if value is not None)
    yield f"{'run':<14} {', '.join(run)}"
  yield f"{'versions':<14} {', '.join(f'{name} {version}' for name, version in report['versions'].items())}"
  if report["seconds"] is not None:
    yield f"{'translated in':<14} {report['seconds']:.1f} seconds"


def _together(value: object) -> str:
  """A value in words; of a list, such as an ensemble's seeds, all values joined by `+`."""
  if not isinstance(value, list):
    return str(value)
  return " + ".join(f"({_together(each)})" if isinstance(each, list) else str(each) for each in value)


def _comparison_lines(report: JsonObject) -> Iterator[str]:
  comparison = report["comparison"]
  if not comparison:
    return
  yield f"compared with {comparison['file']}, sha256 {comparison['sha256']},"
  yield f"by {comparison['method']}, {comparison['resamples']:,} times"
  for name, found in comparison["scores"].items():
    if not found:
      yield f"{_TITLES[name]:<14} {'':>6}  {_no_ter('compared')}"
      continue
    ours = report["scores"][name]["score"]
    yield (
      f"{_TITLES[name]:<14} {ours:6.2f}  against {found['score']:.2f}, difference {found['difference']:+.2f}, "
      f"p = {found['p_value']:.3f}  {found['signature']}"
    )

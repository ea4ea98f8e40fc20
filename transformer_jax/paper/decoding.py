"""§6.1, decoding: beam search and its length penalty, lengths, scores."""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import jax
import jax.numpy as jnp
import numpy as np

from transformer_jax.config import Config, DecodeConfig, EvaluateConfig, LengthPenalty
from transformer_jax.data.tokenizer import Tokenizer
from transformer_jax.decoding import beam_search, programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.translator import Translator
from transformer_jax.evaluation import report, scores
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.model.transformer import Transformer
from transformer_jax.paper import formulas
from transformer_jax.paper.examples import float64, random_params
from transformer_jax.paper.statement import Deviation, Statements, require_close, require_equal
from transformer_jax.paper.tiny import SHALLOW, SOURCE, TARGET
from transformer_jax.runs import averaging

STATEMENTS = Statements()

_VOCABULARY = 7
_penalty = functools.partial(formulas.length_penalty, alpha=0.6)


class _Toy:
  """log P(next token | token before, its position), at random: small enough to try every sequence."""

  def __init__(self, sentences: int, limit: int, probabilities: np.ndarray | None = None):
    self.limit = limit
    if probabilities is None:
      logits = 2 * np.random.default_rng(0).standard_normal((sentences, limit, _VOCABULARY, _VOCABULARY))
      probabilities = formulas.softmax(logits)
    shape = (sentences, limit, _VOCABULARY, _VOCABULARY)
    self.log_probs = np.log(np.broadcast_to(probabilities, shape)).astype(np.float32)

  def next(self, sentence: int, tokens: Sequence[int]) -> np.ndarray:
    return self.log_probs[sentence, len(tokens), (BOS, *tokens)[-1]]

  def search(self, beam_size: int, alpha: float, steps: list[int] | None = None) -> list[tuple[float, tuple[int, ...]]]:
    """Score and tokens of the best hypothesis of each sentence; `steps` gets an element for each step."""
    table, sentences = jnp.asarray(self.log_probs), len(self.log_probs)

    def step(cache: jax.Array, positions: jax.Array, parents: jax.Array, tokens: jax.Array):
      if steps is not None:
        jax.debug.callback(steps.append, 1)
      return table[cache[:, None], positions[:, None], tokens], cache

    def search() -> beam_search.Hypotheses:
      limits = jnp.full(sentences, self.limit, jnp.int32)
      options = SearchOptions(beam_size, LengthPenalty.GNMT, alpha)
      return beam_search.beam_search(step, jnp.arange(sentences), limits, self.limit, options)

    found = jax.device_get(jax.jit(search)())
    jax.effects_barrier()
    best = zip(found.scores[:, 0], found.tokens[:, 0], found.lengths[:, 0], strict=True)
    return [(float(score), tuple(tokens[:length].tolist())) for score, tokens, length in best]


def _require_found(found: list, expected: list, what: str) -> None:
  require_equal([tokens for _, tokens in found], [tokens for _, tokens in expected], what)
  require_close([score for score, _ in found], [score for score, _ in expected], f"the scores of {what}")


@STATEMENTS.add(
  "6.1",
  "Beam search with a beam size of 4.",
  code="decoding/beam_search.py: beam_search",
  test="tests/decoding/test_beam_search.py::test_equals_plain_beam_search_which_does_not_end_early",
)
def beam_of_four():
  require_equal(DecodeConfig().beam_size, 4, "the beam size by default")
  toy = _Toy(sentences=5, limit=11)
  expected = [formulas.beam_search(functools.partial(toy.next, i), 11, 4, _penalty)[0] for i in range(5)]
  _require_found(toy.search(4, 0.6), expected, "what a beam of 4 finds")


class _Numbers(Tokenizer):
  """A tokenizer of texts that are the tokens' numbers."""

  longest_piece = 4

  def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
    return [[int(word) for word in text.split()] for text in texts]

  def decode(self, ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))

  def pieces(self, ids: Sequence[int]) -> list[str]:
    return [*map(str, ids)]

  def files(self) -> dict[str, bytes]:
    return {}


@STATEMENTS.add(
  "6.1",
  "(The model gives a token's probability from the input and the output's tokens so far; the score is that of the "
  "whole output.)",
  code="decoding/translator.py: Translator",
  test="tests/decoding/test_programs.py::test_cached_and_padded_equals_uncached_and_alone",
)
def search_with_the_model():
  config = Config(model=SHALLOW, decode=DecodeConfig(extra_length=7, max_source_length=8))
  params = random_params(SHALLOW)
  # Tokens become less alike, and the end so probable that one output is short and others are as long as may be.
  end = params["target_embedding"]["table"][EOS]
  norm = params["decoder"]["layers_0"]["feed_forward_sublayer"]["norm"]
  norm["scale"] *= 3
  norm["bias"] += 1.6 * end / (end @ end)
  numbers = _Numbers()
  sentences = [SOURCE[:-1], SOURCE[2:3], TARGET[:5]]  # of different lengths, so that padding is beside the shorter
  texts = [numbers.decode(sentence) for sentence in sentences]
  found = Translator(config, params, numbers).translate(texts, return_scores=True)
  exact, expected = float64(params), []
  for sentence in sentences:

    def log_probs(tokens: tuple[int, ...], source: list[int] = [*sentence, EOS]) -> np.ndarray:  # noqa: B006
      return np.log(formulas.softmax(formulas.transformer(exact, source, [*tokens, PAD])[-1]))

    expected.append(formulas.beam_search(log_probs, len(sentence) + 1 + 7, 4, _penalty)[0])
  outputs = [numbers.decode(tokens[:-1]) for _, tokens in expected]
  require_equal([translation.text for translation in found], outputs, "what a beam of 4 finds with the model")
  scores = [translation.score for translation in found], [score for score, _ in expected]
  require_close(*scores, "the scores of what a beam of 4 finds with the model")


@STATEMENTS.add(
  "6.1",
  "(The search looks for the output with the best score; a beam that holds all hypotheses finds it.)",
  code="decoding/beam_search.py: beam_search",
  test="tests/decoding/test_beam_search.py::test_wide_beam_equals_exhaustive_search",
)
def wide_beam_finds_the_best():
  toy = _Toy(sentences=3, limit=5)
  searches = [functools.partial(toy.next, i) for i in range(3)]
  expected = [formulas.exhaustive_search(log_probs, 5, _VOCABULARY, _penalty)[0] for log_probs in searches]
  _require_found(toy.search(400, 0.6), expected, "what a beam that holds everything finds")


@STATEMENTS.add(
  "6.1",
  "Length penalty with alpha = 0.6: log P(Y) / ((5 + |Y|) / 6)^alpha (Wu et al. 2016).",
  code="decoding/beam_search.py: length_penalty",
  test="tests/decoding/test_beam_search.py::test_penalties",
)
def length_penalty():
  decode = DecodeConfig()
  require_equal((decode.length_penalty, decode.penalty), (0.6, LengthPenalty.GNMT), "the penalty by default")
  lengths = [1, 2, 7, 50]
  found = [beam_search.length_penalty(LengthPenalty.GNMT, 0.6, float(length)) for length in lengths]
  require_close(found, [formulas.length_penalty(length, 0.6) for length in lengths], "penalties")


@STATEMENTS.add(
  "6.1",
  "An output has at most the input's length + 50 tokens.",
  code="decoding/programs.py: search",
  test="tests/decoding/test_programs.py::test_limits_are_the_sentences_own",
  deviation=Deviation(
    "the last position allows only the end of the sentence, so every hypothesis is complete",
    "the score of an output is then the probability of a real sequence",
  ),
)
def longest_output():
  lengths = lengths_without_end(DecodeConfig(), [[7, 5, 9, 8, EOS], [11, EOS, PAD, PAD, PAD]])
  require_equal(lengths, [5 + 50, 2 + 50], "lengths of outputs that do not end by themselves")


def lengths_without_end(decode: DecodeConfig, sources: list[list[int]]) -> list[int]:
  """The lengths of the outputs of a model for which the end is the least probable token after any others."""
  params = random_params(SHALLOW)
  table = params["target_embedding"]["table"]
  table[EOS] *= 5
  norm = params["decoder"]["layers_0"]["feed_forward_sublayer"]["norm"]
  norm["scale"][:], norm["bias"][:] = 0, -table[EOS]  # the decoder's output is the same vector everywhere
  options = SearchOptions(decode.beam_size, decode.penalty, decode.length_penalty)
  search = functools.partial(programs.search, slots=len(sources), extra_length=decode.extra_length)
  found = jax.jit(functools.partial(search, Transformer(SHALLOW), options))(params, jnp.array(sources))
  return found.lengths[:, 0].tolist()


@STATEMENTS.add(
  "6.1",
  "The search of a sentence ends early if it can.",
  code="decoding/beam_search.py: is_done",
  test="tests/decoding/test_beam_search.py::test_ends_as_soon_as_no_unfinished_hypothesis_can_win",
  deviation=Deviation(
    "a sentence is done when no unfinished hypothesis can still win, or by option (`config.decode.patience`) when as "
    "many hypotheses as the beam holds have ended, as in other libraries",
    "the best hypothesis that the beam met is found",
  ),
)
def early_end():
  probabilities = np.full(_VOCABULARY, 0.1 / (_VOCABULARY - 1))
  probabilities[EOS] = 0.9  # nothing longer can be better
  steps: list[int] = []
  found = _Toy(2, 50, probabilities).search(4, 0.6, steps)
  require_equal([tokens for _, tokens in found], [(EOS,)] * 2, "outputs of a model that ends at once")
  require_equal(len(steps), 1, "steps of 50")

  # At the first step the end is a little more probable than any word; the best word is then followed by itself.
  word, length = 4, 11
  probabilities = np.full((1, length, _VOCABULARY, _VOCABULARY), 0.001 / (_VOCABULARY - 1))
  probabilities[..., word] = 0.999
  probabilities[0, 0] = 0.3 / (_VOCABULARY - 2)
  probabilities[0, 0, :, [EOS, word]] = np.array([[0.37], [0.33]])
  probabilities[0, -1, :, EOS] = 1
  found = _Toy(1, length, probabilities).search(4, 0.6)
  expected = [(math.log(0.33 * 0.999**9) / _penalty(length), (*[word] * 10, EOS))]
  _require_found(found, expected, "what is found that is less probable at first but longer")


@STATEMENTS.add(
  "6.1",
  "The models are the mean of the last checkpoints: 5 of the base model, written every ten minutes, and 20 of the big "
  "one (written as often here; the paper does not say).",
  code="runs/averaging.py: mean",
  test="tests/runs/test_averaging.py::test_the_mean_of_the_last_checkpoints_is_what_decodes",
)
def averaged_checkpoints():
  start = datetime(2017, 6, 12)
  times = {step: start + timedelta(minutes=step) for step in range(1, 301)}  # a checkpoint a minute
  for last in (5, 20):
    steps = averaging.chosen(times, last, minutes=10)
    require_equal(steps, list(range(300, 300 - 10 * last, -10)), f"the last {last} of checkpoints ten minutes apart")
    values = np.random.default_rng(last).standard_normal((last, 5, 7)).astype(np.float32)
    found = averaging.mean({"kernel": value} for value in values)["kernel"]
    require_close(found, np.mean(float64(values), axis=0), f"the mean of {last} checkpoints", 1e-6)


def _bleu(translations: list[str], references: list[str]) -> float:
  """Papineni et al. 2002, over a whole corpus with one reference each and words between spaces."""
  logs = []
  for n in range(1, 5):
    matches = total = 0
    for pair in zip(translations, references, strict=True):
      words = [text.split() for text in pair]
      found, wanted = (Counter(tuple(w[i : i + n]) for i in range(len(w) - n + 1)) for w in words)
      matches, total = matches + (found & wanted).total(), total + found.total()
    logs.append(math.log(matches / total))
  lengths = [sum(len(text.split()) for text in texts) for texts in (translations, references)]
  return 100 * math.exp(min(0, 1 - lengths[1] / lengths[0]) + sum(logs) / 4)


@STATEMENTS.add(
  "6.1",
  "Table 2: translations are judged by BLEU.",
  code="evaluation/scores.py: score",
  test="tests/evaluation/test_scores.py::test_words_are_those_of_13a_unless_said_otherwise",
  deviation=Deviation(
    "sacreBLEU on raw text: `13a` splits the words, case counts, and a signature says so",
    "the paper does not say how words are split; only scores with equal splitting compare",
  ),
)
def bleu():
  require_equal((EvaluateConfig().tokenize, EvaluateConfig().lowercase), ("13a", False), "words and case by default")
  references = ["The „quick“ brown fox, 3.5 m long, jumps over the lazy Dog.", "Two men ride a horse; it snows."]
  translations = ["The „slow“ brown fox, 3.5 m long, jumps over the lazy dog.", "two men ride a horse; it snows"]
  # By hand: punctuation of ASCII is parted, but not in a number; quotation marks that ASCII lacks are not.
  of_references = [
    "The „quick“ brown fox , 3.5 m long , jumps over the lazy Dog .",
    "Two men ride a horse ; it snows .",
  ]
  of_translations = [
    "The „slow“ brown fox , 3.5 m long , jumps over the lazy dog .",
    "two men ride a horse ; it snows",
  ]
  found = scores.score(translations, references)
  require_close(found.bleu, _bleu(of_translations, of_references), "BLEU", 1e-6)
  whole = report.build_report(report.Text(None, translations), report.Text(None, references))
  require_close(whole["scores"]["bleu"]["score"], _bleu(of_translations, of_references), "BLEU of a report", 1e-6)

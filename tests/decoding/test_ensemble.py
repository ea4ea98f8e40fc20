"""Several models that translate as one."""

import dataclasses
import functools
import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from tests.commands.lines import text
from tests.example_commands import command_line
from tests.recurrent.example import CONFIGS
from transformer_jax import registry
from transformer_jax.config import Config, Corpus, DataConfig, DecodeConfig, LengthPenalty
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.data.tokenizer_pair import TokenizerPair
from transformer_jax.decoding import programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.decoding.ensemble import ensemble, module, require_one_vocabulary
from transformer_jax.decoding.translator import Translator
from transformer_jax.model import masking
from transformer_jax.model.config import AnyModelConfig, Dtype, ModelConfig, Start
from transformer_jax.model.special_tokens import BOS, EOS, PAD
from transformer_jax.paper import formulas
from transformer_jax.runs import params_file, run_folder
from transformer_jax.runs.run import Model
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks.translation import TASK
from transformer_jax.training.initialization import init_params

VOCAB = 7  # three words, UNK, and the tokens that are no words
LIMIT = 4
TRANSFORMER = ModelConfig(vocab_size=VOCAB, num_layers=1, d_model=6, d_ff=11, num_heads=2, dropout=0.0)


def random_model(config: AnyModelConfig, seed: int) -> tuple:
  """A module, and parameters so large that its tokens have very different probabilities."""
  generator = np.random.default_rng(seed)
  shapes = jax.eval_shape(lambda: init_params(Config(model=config), TASK))
  params = jax.tree.map(lambda x: jnp.asarray(generator.standard_normal(x.shape), x.dtype), shapes)
  return registry.module(config), params


@pytest.fixture(scope="module")
def different():
  """A Transformer and a recurrent model, and the ensemble of them."""
  configs = [TRANSFORMER, dataclasses.replace(CONFIGS["bahdanau"], vocab_size=VOCAB)]
  models = [random_model(config, seed) for seed, config in enumerate(configs)]
  whole = [Model(Config(model=model.config), params, None, 0) for model, params in models]
  _, params = ensemble(whole)
  return models, (module(configs), params)


def log_probs_of(models, source):
  """A function of the tokens so far: the mean over models of log P(next token), without a cache."""

  @jax.jit
  def each(target, position):
    found = []
    for model, params in models:
      apply = functools.partial(model.apply, {"params": params})
      hidden = apply(
        target,
        jnp.arange(LIMIT),
        apply(source, jnp.arange(len(source)), jnp.ones((len(source), len(source)), bool), method="encode"),
        masking.causal_mask(LIMIT),
        jnp.ones((LIMIT, len(source)), bool),
        method="decode",
      )
      found.append(apply(hidden, method="logits")[position])
    return found

  @functools.cache
  def mean(tokens):
    target = np.array([BOS, *tokens, *[PAD] * LIMIT])[:LIMIT]
    logits = np.array(each(target, len(tokens)), np.float64)
    return np.mean(logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True)), axis=0)

  return lambda tokens: mean(tuple(tokens))


@pytest.fixture(scope="module")
def expected(different):
  """All (score, tokens), best first."""
  models, _ = different
  penalty = functools.partial(formulas.length_penalty, alpha=0.6)
  return formulas.exhaustive_search(log_probs_of(models, np.array([5, EOS])), LIMIT, VOCAB, penalty)


def found_by(model, beam_size, source):
  options = SearchOptions(beam_size, LengthPenalty.GNMT, 0.6, n_best=min(beam_size, 5))
  search = functools.partial(programs.search, model[0], options, slots=2, extra_length=LIMIT - 2)
  return jax.device_get(jax.jit(search)(model[1], source))


@pytest.mark.parametrize("without", [(), (PAD, BOS)])
def test_log_probabilities_are_the_mean_over_the_models(different, without):
  models, (model, params) = different
  generator, expected = np.random.default_rng(0), []
  hidden = tuple(generator.standard_normal((3, each.config.d_model)).astype(np.float32) for each, _ in models)
  for own, (_, tables), name in zip(hidden, models, ("target_embedding", "embedding"), strict=True):
    scores = np.exp(own @ np.asarray(tables[name]["table"]).T)
    scores[:, without] = 0
    with np.errstate(divide="ignore"):
      expected.append(np.log(scores / scores.sum(axis=1, keepdims=True)))
  found = programs._log_probs(model, {"params": params}, hidden, without)
  np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=1e-5)


@pytest.mark.long
def test_the_search_is_the_exhaustive_one_over_the_mean(different, expected):
  """A beam with room for every hypothesis finds the best of all; beside it another sentence is searched for."""
  found = found_by(different[1], (VOCAB - 3) ** (LIMIT - 1), np.array([[5, EOS], [EOS, PAD]], np.int32))
  for place, (score, tokens) in enumerate(expected[:5]):
    assert tuple(found.tokens[0, place, : found.lengths[0, place]]) == tuple(tokens)
    np.testing.assert_allclose(found.scores[0, place], score, rtol=1e-5)


@pytest.mark.long
def test_greedy_search_takes_the_largest_mean(different):
  models, model = different
  log_probs, tokens = log_probs_of(models, np.array([4, EOS])), []
  while len(tokens) < LIMIT and tokens[-1:] != [EOS]:
    allowed = [EOS] if len(tokens) == LIMIT - 1 else [t for t in range(VOCAB) if t not in (BOS, PAD)]
    tokens.append(max(allowed, key=lambda token: log_probs(tokens)[token]))
  found = found_by(model, 1, np.array([[4, EOS], [6, EOS]], np.int32))
  assert found.tokens[0, 0, : found.lengths[0, 0]].tolist() == tokens


# Run folders


@pytest.fixture(scope="module")
def workdirs(translator, tmp_path_factory):
  """Run folders of a Transformer and of Luong's model with the same vocabulary, and of one with another vocabulary."""
  decode = dataclasses.replace(translator.config.decode, max_source_length=16, extra_length=7)
  luong = Config(model=dataclasses.replace(CONFIGS["luong-dot"], vocab_size=311), decode=decode)
  other = SentencePieceTokenizer.learn(["another vocabulary, which is learned from another text"], 283)
  small = Config(model=dataclasses.replace(luong.model, vocab_size=283), decode=decode)
  runs = [
    (translator.config, translator.params, translator._tokenizer),
    (luong, random_model(luong.model, 3)[1], translator._tokenizer),
    (small, random_model(small.model, 3)[1], other),
  ]
  folders = [tmp_path_factory.mktemp("run") for _ in runs]
  for folder, (config, params, tokenizer) in zip(folders, runs, strict=True):
    params_file.write(folder, params, 7, Dtype.FLOAT32)
    run_folder.begin_run(epath.Path(folder), config, tokenizer, [])
  return folders


@pytest.fixture(scope="module")
def mixed(workdirs):
  return Translator.load(workdirs[:2])


@pytest.mark.long
def test_a_score_is_the_mean_of_the_models_scores(workdirs, mixed):
  pairs = [("abc de", "f ghij ab"), ("de de", ""), ("", "bcd")]
  each = [[found.log_probability for found in Translator.load(workdir).score(pairs)] for workdir in workdirs[:2]]
  found = mixed.score(pairs)
  assert np.abs(np.subtract(*each)).min() > 0.1
  np.testing.assert_allclose([pair.log_probability for pair in found], np.mean(each, axis=0), rtol=1e-6)


def test_the_lengths_are_the_least_whichever_model_has_them():
  one, other = (
    Model(Config(decode=DecodeConfig(max_source_length=most, extra_length=extra)), {}, None, 0)
    for most, extra in ((20, 5), (16, 7))
  )
  for models in ([one, other], [other, one]):
    decode = ensemble(models)[0].decode
    assert (decode.max_source_length, decode.extra_length) == (16, 5)


def test_an_ensemble_has_the_config_of_the_first_model_but_for_lengths(mixed, translator):
  assert (mixed.config.decode.max_source_length, mixed.config.decode.extra_length) == (16, 5)
  assert mixed.config.model == translator.config.model
  assert (mixed.step, mixed.steps) == (None, (7, 7))


def opened(path, tokenizer, model=TRANSFORMER, **data):
  """What an ensemble asks of a run."""
  return SimpleNamespace(path=path, tokenizer=tokenizer, config=Config(model=model, data=DataConfig(**data)))


def test_all_translate_in_one_direction():
  tokenizer = SentencePieceTokenizer.learn(["abc de"], 273)
  there, back = opened("a", tokenizer), opened("b", tokenizer, source_language="de", target_language="en")
  require_one_vocabulary([back, back])
  with pytest.raises(InputError, match=r"^a translates from en to de and b from de to en, but the "):
    require_one_vocabulary([there, there, back])
  tags = {"corpus": Corpus.TEXT, "tags": True}
  some, same, other = (
    opened(name, tokenizer, train=train, **tags)
    for name, train in (("a", "x:en-de;y:de-fr"), ("b", "z:de-fr;x"), ("c", "x"))
  )
  require_one_vocabulary([some, same])
  with pytest.raises(InputError, match=r"^a translates from de to fr, en to de and c from en to de, but the "):
    require_one_vocabulary([some, other])
  one = opened("d", tokenizer, train="x:en-de", **tags)
  require_one_vocabulary([one, one])
  for runs in ([there, one], [one, there]):
    with pytest.raises(InputError, match=r"^d was trained with config\.data\.tags and a without, but the "):
      require_one_vocabulary(runs)


def test_decoders_need_one_token_to_begin_with():
  """A recurrent model always begins with BOS."""
  tokenizer, padding = SentencePieceTokenizer.learn(["abc de"], 273), dataclasses.replace(TRANSFORMER, start=Start.PAD)
  first, other, recurrent = (
    opened(path, tokenizer, model) for path, model in (("a", TRANSFORMER), ("b", padding), ("c", CONFIGS["plain"]))
  )
  require_one_vocabulary([first, recurrent, first])
  require_one_vocabulary([other, other])
  for runs, names in (((first, other), "a and b"), ((other, other, recurrent), "b and c")):
    message = f"^the decoders of {names} begin with different tokens, but those of an ensemble need the same: train "
    with pytest.raises(InputError, match=message):
      require_one_vocabulary(runs)


def test_sources_need_one_vocabulary_too():
  source, target = (SentencePieceTokenizer.learn(["abc de", "f ghij ab"], size) for size in (273, 275))
  first, other = (opened(path, TokenizerPair(side, target)) for path, side in (("a", source), ("b", target)))
  require_one_vocabulary([first, first])
  message = r"a and b have different vocabularies, .* with the other's source\.model,target\.model as config\.data"
  with pytest.raises(InputError, match=message):
    require_one_vocabulary([first, other])


def test_what_is_no_ensemble_is_one_sentence(workdirs, mixed):
  with pytest.raises(InputError, match=f"{workdirs[0]} and {workdirs[2]} have different vocabularies, but "):
    Translator.load([workdirs[0], workdirs[2]])
  with pytest.raises(InputError, match="load was given an empty list"):
    Translator.load([])
  with pytest.raises(InputError, match="an ensemble has the attention of each of its models"):
    mixed.attention("abc")
  with pytest.raises(InputError, match="the next token are given for one model alone"):
    mixed.next_token("abc")


@pytest.mark.long
def test_a_model_with_itself_translates_as_alone(workdirs, lines):
  alone, one, two = (Translator.load(each) for each in (workdirs[0], workdirs[:1], [workdirs[0]] * 2))
  found = alone.translate(lines[:5], return_scores=True)
  assert one.translate(lines[:5], return_scores=True) == found
  together = two.translate(lines[:5], return_scores=True)
  assert [translation.text for translation in together] == [translation.text for translation in found]
  np.testing.assert_allclose([t.score for t in together], [t.score for t in found], rtol=1e-6)


@pytest.mark.long
def test_neighbours_change_no_bit(mixed, lines):
  found = mixed.translate(lines[:9], return_scores=True)
  assert mixed.translate(lines[3:4], return_scores=True) == found[3:4]
  assert mixed.translate(lines[8::-1], return_scores=True) == found[::-1]
  tree = mixed.search_tree(lines[0])
  assert tree.texts[0] == found[0].text
  np.testing.assert_allclose(tree.nodes[tree.best[0]].score, found[0].score, rtol=1e-5)


@pytest.mark.long
def test_the_command_names_each_checkpoint(workdirs, mixed, lines, monkeypatch, capfdbinary, tmp_path):
  run = command_line(monkeypatch, capfdbinary, tmp_path, every_line=True)
  flags = [word for workdir in workdirs[:2] for word in ("--workdir", workdir)]
  status, out, err = run("translate", *flags, stdin=text(lines[:3]).encode())
  assert (status, out) == (0, text(mixed.translate(lines[:3])))
  assert err[:2] == [f"restoring the checkpoint of step 7, the last, of {workdir}" for workdir in workdirs[:2]]
  status, out, err = run("translate", *flags, "--workdir", workdirs[2])
  assert (status, out) == (2, "") and f"{workdirs[2]} have different vocabularies" in err[-1]
  for name in ("source", "reference"):
    (tmp_path / name).write_text(text(lines[:3]))
  options = ["--source", tmp_path / "source", "--reference", tmp_path / "reference", "--report", "--json"]
  status, out, _ = run("evaluate", *flags, *options)
  facts = json.loads(out)["run"]
  assert (status, facts["step"], facts["seed"], facts["averaged_steps"]) == (0, [7, 7], [0, 0], None)

"""The typed configuration of an experiment, validated when it is made.

A file in `configs/` returns a `Config`. The dataclasses are mutable, so the
file's functions may change the values. `serialization.validated` therefore
rebuilds the whole tree afterwards, so that the checks in `__post_init__` see the
final values. From then on a `Config` is not changed, so that `ModelConfig` can
be a hashable attribute of the modules.

`--help` prints the sections `Attributes:` as the descriptions of the keys.
"""

import enum
import math
from dataclasses import dataclass, field

from transformer_jax.model.config import FLOAT32, AnyModelConfig, ModelConfig
from transformer_jax.runtime.errors import InputError, convert_words, require, require_key


class Corpus(enum.Enum):
  """The kinds of a corpus."""

  NUMBERS = "numbers"
  TEXT = "text"
  TFDS = "tfds"
  PREPARED = "prepared"
  REGISTERED = "registered"
  TREES = "trees"
  GRAMMAR = "grammar"


class Document(enum.Enum):
  """What a document of a plain text is; no token attends to another document, but in BERT's pairs of texts."""

  FILE = "file"
  PARAGRAPH = "paragraph"
  LINE = "line"


class PieceKind(enum.Enum):
  """The kind of vocabulary to learn."""

  BPE = "bpe"
  UNIGRAM = "unigram"


class Decay(enum.Enum):
  """The decay of the probability of teacher forcing over the updates (see `training/scheduled_sampling.py`)."""

  NONE = "none"
  LINEAR = "linear"
  INVERSE_SIGMOID = "inverse-sigmoid"


class Optimizer(enum.Enum):
  """How gradients become updates (see `training/optimizer.py`)."""

  ADAM = "adam"
  ADAMW = "adamw"


class Schedule(enum.Enum):
  """The learning rate after the warmup (see `training/schedule.py`)."""

  INVERSE_SQUARE_ROOT = "inverse-square-root"
  COSINE = "cosine"
  LINEAR = "linear"
  CONSTANT = "constant"


class BestBy(enum.Enum):
  """What tells the best checkpoint: the lowest validation loss, or the highest BLEU."""

  LOSS = "loss"
  BLEU = "bleu"

  def __str__(self) -> str:
    return {"loss": "validation loss", "bleu": "validation BLEU"}[self.value]


class LengthPenalty(enum.Enum):
  """How a hypothesis' log-probability becomes its score (see `decoding/beam_search.py`)."""

  GNMT = "gnmt"
  FAIRSEQ = "fairseq"


# More hypotheses, or more tokens in a sentence or in a row, are taken for a mistake.
MOST_BEAMS, MOST_TOKENS, MOST_ROW = 1 << 10, 1 << 16, 1 << 24
# If the model has not learned to end an output, the output becomes this much longer than its input, and each token is
# a step of the search.
MOST_EXTRA = 1 << 10
# A length penalty with a larger alpha overflows float32; the values in the literature are at most 2.
MOST_ALPHA = 5
# The largest value of numbers that have no limit of their own: float32 must hold what is computed with them.
MOST_NUMBER = 10**6
_FLOAT32_ONE = 1 - 2**-25  # the first number that is 1 in float32, in which the update is computed


@dataclass
class DataConfig:
  """The source of sentence pairs or plain text, and its layout in rows.

  Attributes:
    corpus: the kind of corpus: `numbers` (embedded), `text` (files),
      `tfds` (TensorFlow Datasets), `prepared` (packed rows of `transformer-jax
      prepare`; validation and test are files as for `text`), `registered` (a corpus of another package,
      see `data/corpus.py`), `trees` (treebanks in Penn's format) or `grammar` (an
      embedded treebank, see `data/grammar.py`).
    document: what a document of a plain text is: a `file`, a `paragraph`
      between blank lines, or a `line`; not used for sentence pairs.
    source_language: the code of the language to translate from; for `text` the
      ending of the source's file, as in `PREFIX.en`.
    target_language: the code of the language to translate into; for `text` the
      ending of the target's file, as in `PREFIX.de`.
    train: the training text. For `text` a prefix or `SOURCE,TARGET`, several
      separated by `;`, each with an optional `*WEIGHT` (how often an epoch
      reads it); for `trees` files separated by `;`; for `prepared` the folder; for
      `registered` what its function takes; for the other kinds the name of a
      split. A language model has plain files separated by `;`, a classifier one
      TSV file.
    validation: the text for validation during training, named like `train`;
      empty means none.
    test: the text for the test at the end, named like `train`; empty means
      none.
    dataset: the TFDS name, such as `wmt14_translate/de-en`, or the name of a
      registered corpus.
    data_dir: the folder of TFDS; empty means TFDS' default.
    tags: whether each source begins with the tag of its target language, such as
      `<2de>`. A corpus in `train`, `validation` and `test` then may name its
      languages: `PREFIX:en-de` is one direction, `PREFIX:en+de+fr` all six. For
      `text` only.
    temperature: T of temperature sampling: a direction with n pairs is read in
      proportion to n ** (1 / T), by repeating pairs of smaller ones; 1 turns
      this off. Needs `tags`.
    row_length: the tokens of a packed row, on each side.
    max_length: the longest sentence allowed in training and in the validation
      loss, in tokens with its EOS; 0 means `row_length`, as it must for language
      models. Longer pairs are skipped, counted and reported.
    tokenizer: the file of a SentencePiece model, or `SOURCE,TARGET` with
      `model.source_vocab_size`; empty learns from `train`.
    pieces: the kind of vocabulary to learn: `bpe`, byte-pair encoding as in the
      paper, or `unigram` (Kudo 2018).
    bpe_dropout: the probability that BPE-dropout drops a merge (Provilkov et
      al. 2020): each sentence then has other pieces in each epoch of training.
      0 means no dropout.
    unigram_alpha: alpha of subword regularisation (Kudo 2018) with a unigram
      vocabulary: each epoch draws the pieces of each sentence, with
      probabilities to the power of alpha. None draws none.
    shard_pairs: the pairs of a shard. The training text is packed shard by shard
      during the run, and rows are shuffled within shards. 0 packs all of it
      before the run and shuffles all rows. For `text` only.
    cache_dir: the folder of the packed rows; empty means the user's cache folder.
  """

  corpus: Corpus = Corpus.NUMBERS
  document: Document = Document.FILE
  source_language: str = "en"
  target_language: str = "de"
  train: str = "train"
  validation: str = "validation"
  test: str = ""
  dataset: str = ""
  data_dir: str = ""
  tags: bool = False
  temperature: float = 1.0
  row_length: int = 128
  max_length: int = 0
  tokenizer: str = ""
  pieces: PieceKind = PieceKind.BPE
  bpe_dropout: float = 0.0
  unigram_alpha: float | None = None
  shard_pairs: int = 0
  cache_dir: str = ""

  def __post_init__(self):
    convert_words(self, "data")
    self._check_prepared()
    tagged = not self.tags or self.corpus is Corpus.TEXT
    require_key(self, "data.tags", tagged, "false unless config.data.corpus is text")
    sampled = self.temperature == 1 or (self.tags and 1 < self.temperature < math.inf)
    require_key(self, "data.temperature", sampled, "at least 1 with config.data.tags, and 1 without it")
    require_key(self, "data.bpe_dropout", 0 <= self.bpe_dropout < 1, "at least 0 and below 1")
    alpha = self.unigram_alpha
    valid = alpha is None or 0 <= alpha <= MOST_NUMBER
    require_key(self, "data.unigram_alpha", valid, f"from 0 to {MOST_NUMBER:,}, or None")
    require_key(self, "data.bpe_dropout", alpha is None or not self.bpe_dropout, "0 with config.data.unigram_alpha")
    require_key(self, "data.shard_pairs", self.shard_pairs >= 0, "at least 0")
    plain = self.corpus is Corpus.TEXT and not (self.tags or self.samples_pieces)
    expected = "0 with tags, random pieces, or another config.data.corpus than text"
    require_key(self, "data.shard_pairs", plain or not self.shard_pairs, expected)
    require_key(self, "data.row_length", 1 < self.row_length <= MOST_ROW, f"from 2 to {MOST_ROW}")
    require_key(self, "data.max_length", self.max_length >= 0, "at least 0")
    if self.max_length > self.row_length:
      raise InputError(
        f"config.data.row_length is {self.row_length}, shorter than the longest sentence allowed, "
        f"config.data.max_length = {self.max_length}: raise the one or lower the other"
      )
    named = self.corpus in (Corpus.TFDS, Corpus.REGISTERED)
    require_key(self, "data.dataset", not named or bool(self.dataset), "the name of a dataset")
    unread = self.corpus is Corpus.NUMBERS and bool(self.dataset)
    expected = "empty with config.data.corpus=numbers: set that to tfds or registered to read it"
    require_key(self, "data.dataset", not unread, expected)
    for key in ("source_language", "target_language"):
      language = getattr(self, key)
      require_key(self, f"data.{key}", bool(language) and language.isprintable(), "a language code")
    differ = self.source_language != self.target_language
    require_key(self, "data.target_language", differ, "another language than the source's")

  def _check_prepared(self) -> None:
    if self.corpus is not Corpus.PREPARED:
      return
    require_key(self, "data.corpus", not self.samples_pieces, "text with random pieces, which need the text")
    for key in ("validation", "test"):
      is_text = getattr(self, key) != self.train
      require_key(self, f"data.{key}", is_text, "text, which a folder of prepared rows does not have")

  @property
  def has_trees(self) -> bool:
    """Whether the targets are linearised parse trees."""
    return self.corpus in (Corpus.TREES, Corpus.GRAMMAR)

  @property
  def samples_pieces(self) -> bool:
    """Whether sentences have other pieces in each epoch of training."""
    return self.bpe_dropout > 0 or self.unigram_alpha is not None

  @property
  def packs_ahead(self) -> bool:
    """Whether the training text is packed part by part during the run."""
    return self.samples_pieces or self.shard_pairs > 0

  @property
  def longest(self) -> int:
    """The longest sentence allowed, in tokens with its EOS."""
    return self.max_length or self.row_length


@dataclass
class TrainConfig:
  """The training recipe (§5).

  Attributes:
    steps: the updates of the whole run.
    batch_tokens: the tokens of a batch on each side, padding included; a batch
      is `batch_tokens // row_length` rows over all devices and hosts.
    accumulation: the micro-batches per batch, to save memory; the result is the
      same.
    optimizer: `adam`, as in the paper, or `adamw`, which also decays the weights
      (Loshchilov and Hutter 2019).
    weight_decay: AdamW's factor: an update subtracts learning rate *
      weight_decay * weight. Biases and arrays with one axis, such as LayerNorm's
      gains, are left out.
    clip_norm: the largest norm of all gradients together; larger ones are scaled
      down to it. 0, as in the paper, is no limit.
    schedule: the learning rate after the warmup: `inverse-square-root`, as in
      the paper; `cosine` or `linear`, which fall to 0 after the last of `steps`;
      or `constant`.
    warmup_steps: the updates in which the learning rate rises (eq. 3).
    peak_learning_rate: the learning rate at `warmup_steps`; none means that of
      eq. 3, (d_model * warmup_steps) ** -0.5.
    beta1: Adam's decay of the mean of the gradients.
    beta2: Adam's decay of the mean of their squares.
    epsilon: the number that Adam adds to the denominator.
    label_smoothing: the probability epsilon_ls that is spread over all tokens (§5.4).
    r_drop: alpha of R-Drop (Liang et al. 2021): each update makes two passes with
      different dropout and penalises their divergence. 0 is one pass.
    scheduled_sampling: the decay of the probability that the decoder reads a
      token of the reference and not one of its own (Bengio et al. 2015):
      `linear`, `inverse-sigmoid`, or `none`, which is teacher forcing. For the
      recurrent models only.
    sampling_k: k of that decay, in updates.
    sampling_least: the smallest probability of the linear decay.
    ema_decay: the decay of an exponential moving average of the parameters,
      which validation, the test and decoding then use in place of the
      parameters; 0 means no average.
    max_skipped: the most updates in a row that may be skipped because their loss
      or gradients are not finite; more end the run at the next line of the log,
      or at a validation before it.
    seed: the seed of the parameters, of dropout and of the order of rows.
    init_from: a run folder; this run begins with its vocabulary and its last
      parameters, or their moving average. `transformer-jax train` also takes its
      `config.model`, except dropout, types, `remat`, `fused_attention` and keys
      set on the command line. All other keys are those of this run.
      Empty means random parameters.
    embeddings: a file of word vectors in the text format of word2vec, GloVe and
      fastText. The embeddings of pieces that are whole words begin with them,
      multiplied by one number so that they are as large as random ones. Empty
      means random embeddings.
    freeze_embeddings: whether the tables of the tokens' embeddings stay as they
      are at the start, those of `embeddings` or of `init_from`.
    log_every: the steps between two lines of the log.
    save_every: the steps between two checkpoints; 0 saves only at the end.
    keep: how many last checkpoints to keep; the best by validation is kept, too.
      One made only for a signal does not count: it goes once there are a newer
      one and `keep` others.
    best_by: what tells the best checkpoint: the validation `loss`, summed if
      there are two, or `bleu` on the first `evaluate.sentences` validation
      sentences. Trees need `loss`.
    patience: the number of validations in a row without a new best that end
      the run; each best one is saved. `steps` stays the upper bound. 0 means
      that the run never ends before it.
  """

  steps: int = 100_000
  batch_tokens: int = 25_000
  accumulation: int = 1
  optimizer: Optimizer = Optimizer.ADAM
  weight_decay: float = 0.0
  clip_norm: float = 0.0
  schedule: Schedule = Schedule.INVERSE_SQUARE_ROOT
  warmup_steps: int = 4000
  peak_learning_rate: float | None = None
  beta1: float = 0.9
  beta2: float = 0.98
  epsilon: float = 1e-9
  label_smoothing: float = 0.1
  r_drop: float = 0.0
  scheduled_sampling: Decay = Decay.NONE
  sampling_k: float = 1000.0
  sampling_least: float = 0.0
  ema_decay: float = 0.0
  max_skipped: int = 10
  seed: int = 0
  init_from: str = ""
  embeddings: str = ""
  freeze_embeddings: bool = False
  log_every: int = 100
  save_every: int = 1000
  keep: int = 3
  best_by: BestBy = BestBy.LOSS
  patience: int = 0

  def __post_init__(self):
    convert_words(self, "train")
    for name in ("steps", "batch_tokens", "accumulation", "warmup_steps", "log_every", "keep"):
      require_key(self, f"train.{name}", getattr(self, name) > 0, "positive")
    for name in ("save_every", "max_skipped", "patience"):
      require_key(self, f"train.{name}", getattr(self, name) >= 0, "0 or more")
    for name in ("beta1", "beta2", "label_smoothing", "sampling_least", "ema_decay"):
      require_key(self, f"train.{name}", 0 <= getattr(self, name) < _FLOAT32_ONE, "at least 0 and below 1 in float32")
    least, most = FLOAT32
    require_key(self, "train.epsilon", least <= self.epsilon <= most, f"from {least} to {most}")
    require_key(self, "train.sampling_k", 1 <= self.sampling_k <= MOST_NUMBER, f"from 1 to {MOST_NUMBER:,}")
    require_key(self, "train.seed", self.seed >= 0, "0 or more")
    self._check_optimizer()
    rate = self.peak_learning_rate
    expected = f"None, or from {least} to {most}"
    require_key(self, "train.peak_learning_rate", rate is None or least <= rate <= most, expected)
    expected = "empty with config.train.init_from, whose run has trained embeddings"
    require_key(self, "train.embeddings", not (self.embeddings and self.init_from), expected)
    trained = bool(self.embeddings or self.init_from)
    expected = "false without config.train.embeddings and config.train.init_from, as random embeddings say nothing"
    require_key(self, "train.freeze_embeddings", trained or not self.freeze_embeddings, expected)

  def _check_optimizer(self) -> None:
    for name in ("weight_decay", "clip_norm", "r_drop"):
      value, (least, most) = getattr(self, name), FLOAT32
      require_key(self, f"train.{name}", value == 0 or least <= value <= most, f"0, or from {least} to {most}")
    decays = self.optimizer is Optimizer.ADAMW
    require_key(self, "train.weight_decay", decays or not self.weight_decay, "0 unless config.train.optimizer is adamw")
    fits = not self.ends_at_last_step or self.warmup_steps <= self.steps
    expected = f"at most config.train.steps = {self.steps} with config.train.schedule={self.schedule.value}"
    require_key(self, "train.warmup_steps", fits, expected)
    of_schedule = [] if self.schedule is Schedule.INVERSE_SQUARE_ROOT else ["warmup_steps"]
    for name in of_schedule + ["steps"] * self.ends_at_last_step:  # optax's schedules compute with them as int32
      expected = f"below 2^31 with config.train.schedule={self.schedule.value}"
      require_key(self, f"train.{name}", getattr(self, name) < 1 << 31, expected)

  @property
  def passes(self) -> int:
    """How often an update computes the model for each row."""
    return 2 if self.r_drop else 1

  @property
  def ends_at_last_step(self) -> bool:
    """Whether the learning rate of each update depends on `steps`."""
    return self.schedule in (Schedule.COSINE, Schedule.LINEAR)


@dataclass
class EvaluateConfig:
  """The scoring of translations, during training and by `evaluate`.

  Attributes:
    every: the steps between two validations; 0 validates only at the end.
    sentences: the validation sentences that are translated each time, 0 for
      none; the loss is that of all.
    tokenize: sacreBLEU's tokenisation; `none` for text that is tokenised already.
    lowercase: whether BLEU and chrF2 ignore case.
  """

  every: int = 1000
  sentences: int = 500
  tokenize: str = "13a"
  lowercase: bool = False

  def __post_init__(self):
    for name in ("every", "sentences"):
      require_key(self, f"evaluate.{name}", getattr(self, name) >= 0, "0 or more")


@dataclass
class DecodeConfig:
  """The search for translations (§6.1).

  Attributes:
    beam_size: the hypotheses kept at each step; 1 is greedy search.
    length_penalty: alpha, the exponent of the length penalty.
    penalty: the kind of length penalty: `gnmt`, ((5 + |Y|) / 6) ** alpha, or
      `fairseq`, |Y| ** alpha.
    patience: a sentence is done when `patience` times `beam_size` hypotheses
      have ended (1 is fairseq's rule); 0 searches until no better hypothesis is
      possible, which takes longer.
    renormalize: whether the softmax leaves out tokens that no output has, such as
      PAD; otherwise the search only skips them.
    extra_length: how many tokens longer than its input an output may be.
    max_source_length: the longest input, in tokens with its EOS, that is
      translated as a whole; a longer one is translated in parts, with a warning.
  """

  beam_size: int = 4
  length_penalty: float = 0.6
  penalty: LengthPenalty = LengthPenalty.GNMT
  patience: float = 0.0
  renormalize: bool = False
  extra_length: int = 50
  max_source_length: int = 256

  def __post_init__(self):
    convert_words(self, "decode")
    ranges = {
      "beam_size": (1, MOST_BEAMS),
      "length_penalty": (0, MOST_ALPHA),
      "extra_length": (1, MOST_EXTRA),
      "max_source_length": (2, MOST_TOKENS),
    }
    for name, (least, most) in ranges.items():
      require_key(self, f"decode.{name}", least <= getattr(self, name) <= most, f"from {least} to {most}")
    require_key(self, "decode.patience", 0 <= self.patience <= MOST_NUMBER, f"from 0 to {MOST_NUMBER:,}")


@dataclass
class Config:
  """One experiment.

  Attributes:
    debug: whether to stop at the first NaN of an update or a validation loss, with a traceback to the operation that
      computed it; slow.
  """

  data: DataConfig = field(default_factory=DataConfig)
  model: AnyModelConfig = field(default_factory=ModelConfig)
  train: TrainConfig = field(default_factory=TrainConfig)
  decode: DecodeConfig = field(default_factory=DecodeConfig)
  evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
  debug: bool = False

  def __post_init__(self):
    if self.train.batch_tokens < self.data.row_length:
      raise InputError(
        f"config.train.batch_tokens is {self.train.batch_tokens}, less than one row of "
        f"config.data.row_length = {self.data.row_length} tokens: raise one, or lower the other"
      )
    for key, size in zip(("vocab_size", "source_vocab_size"), reversed(self.model.vocab_sizes), strict=False):
      require(f"model.{key}", size, size < 1 << 31, "below 2 ** 31, as tokens are 32-bit integers")
    one_vocabulary = not self.train.embeddings or len(self.model.vocab_sizes) == 1
    expected = "empty with config.model.source_vocab_size, as one file has vectors for one vocabulary"
    require_key(self.train, "train.embeddings", one_vocabulary, expected)
    forced = self.train.scheduled_sampling is Decay.NONE or self.model.chooses_inputs
    expected = "none, except for the recurrent models that translate"
    require_key(self.train, "train.scheduled_sampling", forced, expected)
    translates = self.model.translates or not self.train.r_drop
    require_key(self.train, "train.r_drop", translates, "0 for a model that does not translate")
    self._check_pieces()
    self._check_best()
    tagged = not self.data.tags or self.model.translates
    require_key(self.data, "data.tags", tagged, "false for a model that does not translate")
    whole = not self.data.shard_pairs or self.model.translates
    require_key(self.data, "data.shard_pairs", whole, "0 for a model that does not translate")
    fits = self.data.row_length % 2 == 0 or not self.model.needs_cudnn
    require_key(self.data, "data.row_length", fits, "even with config.model.fused_attention")
    if not self.train.init_from:  # otherwise the model's sizes are not known yet
      self.require_positions()

  def require_positions(self) -> None:
    """Raises InputError if the model's table of positions is shorter than a row, or than what a search reads."""
    longest = {"data.row_length": self.data.row_length}
    if self.model.translates:
      decode = self.decode
      longest["decode.max_source_length + decode.extra_length"] = decode.max_source_length + decode.extra_length
    most = self.model.most_positions
    for key, needed in longest.items():
      if most is not None and most < needed:
        raise InputError(
          f"config.model.max_positions is {most}, less than config.{key} = {needed}: raise the one or lower the other"
        )

  def _check_pieces(self) -> None:
    data = self.data
    sampled = "data.bpe_dropout" if data.bpe_dropout else "data.unigram_alpha"
    off = "0" if data.bpe_dropout else "None"
    translates = self.model.translates or not data.samples_pieces
    require_key(data, sampled, translates, f"{off} for a model that does not translate")
    plain = not data.has_trees or not data.samples_pieces
    require_key(data, sampled, plain, f"{off} for trees, whose vocabulary has pieces of several words")
    if data.samples_pieces and not data.tokenizer and not self.train.init_from:  # their vocabulary is learned
      kind = PieceKind.BPE if data.bpe_dropout else PieceKind.UNIGRAM
      require_key(data, "data.pieces", data.pieces is kind, f"{kind.value} with config.{sampled}")

  def _check_best(self) -> None:
    train, evaluate = self.train, self.evaluate
    validates = bool(self.data.validation) and evaluate.every > 0
    expected = "0 without config.data.validation and config.evaluate.every"
    require_key(train, "train.patience", not train.patience or validates, expected)
    scored = self.model.translates and evaluate.sentences > 0
    expected = "loss for a model that does not translate, and if config.evaluate.sentences is 0"
    require_key(train, "train.best_by", train.best_by is BestBy.LOSS or scored, expected)

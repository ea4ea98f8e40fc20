"""GPT and BERT as Hugging Face transformers load them from an exported folder: logits, texts, tokens."""

import ast
import dataclasses
import json
import random
import re
import shutil

import numpy as np
import pytest
import safetensors.numpy

from tests.model.example import random_params
from tests.parity import exported
from tests.parity.language_outputs import batch, bert_outputs, gpt_logits, sides_of_batch
from tests.parity.peer import assert_close, required
from transformer_jax.config import Config, Corpus, DataConfig
from transformer_jax.data.documents import decode_text, encode_text
from transformer_jax.data.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer_jax.decoding.generator import Generator
from transformer_jax.interchange.import_ import import_model
from transformer_jax.language.config import BERTClassifierConfig, BERTConfig, GPTConfig
from transformer_jax.model.config import Activation
from transformer_jax.runtime.errors import InputError
from transformer_jax.training.task import task_of

torch = required("torch")
torch.set_num_threads(1)  # more only wait for each other
transformers = required("transformers")

TOKENS, VALID = batch(exported.VOCAB)
SIZES = {
  **{"vocab_size": exported.VOCAB, "num_layers": 2, "d_model": 22, "d_ff": 29, "num_heads": 2, "max_positions": 47},
  **{"dropout": 0.0, "attention_dropout": 0.0},
}
GPT2 = GPTConfig(**SIZES, pre_norm=True)
BERT_CONFIG = BERTConfig(**SIZES)


def config_of(model):
  return Config(data=DataConfig(corpus=Corpus.TEXT, row_length=47), model=model)


def params_of(model):
  """Random weights of a model that prefers pieces to bytes, which alone are no text."""
  params = random_params(config_of(model), task_of(model))
  if isinstance(model, GPTConfig):
    params["embedding"]["table"] = params["embedding"]["table"].at[4:260].multiply(0.1)
  return params


def export(model, folder, to):
  return exported.export_of(config_of(model), params_of(model), folder, to)


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory):
  return export(GPT2, tmp_path_factory.mktemp("gpt2"), "gpt2")


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
  return export(BERT_CONFIG, tmp_path_factory.mktemp("bert"), "bert")


def load(kind, folder, unused=()):
  """The peer of a class of the library; it takes every parameter of the folder but those of the heads in `unused`."""
  found, report = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
  unexpected = {name.split(".")[0] for name in report.pop("unexpected_keys")}
  assert unexpected == set(unused) and not any(report.values()), (unexpected, report)
  return found.eval()


OTHERS = {"activation": Activation.RELU, "layer_norm_epsilon": 1e-3, "num_heads": 11, "num_layers": 3}
VARIANTS = [pytest.param({}, id="usual"), pytest.param(OTHERS, id="other options", marks=pytest.mark.long)]


@pytest.mark.parametrize("options", VARIANTS)
def test_gpt2_logits(tmp_path, options):
  config = dataclasses.replace(GPT2, **options)
  peer = load("GPT2LMHeadModel", export(config, tmp_path, "gpt2"))
  with torch.inference_mode():
    found = peer(torch.tensor(TOKENS)).logits
  assert_close(found.numpy(), gpt_logits(config, params_of(config), TOKENS))


@pytest.mark.long
def test_greedy_texts(gpt2_folder):
  """The library's own settings and tokenizer give the run's greedy texts."""
  peer, tokenizer = load("GPT2LMHeadModel", gpt2_folder), transformers.AutoTokenizer.from_pretrained(gpt2_folder)
  generator, texts = Generator(config_of(GPT2), params_of(GPT2), exported.tokenizer()), set()
  for prompt in ["", "abc", "ab\n\ncd e", "  é "]:
    [sample] = generator.generate(prompt, max_tokens=11, temperature=0)
    inputs = tokenizer(prompt, return_tensors="pt")
    [found] = peer.generate(**inputs, max_length=inputs["input_ids"].shape[1] + 11).tolist()
    assert len(found) - inputs["input_ids"].shape[1] == sample.tokens
    assert tokenizer.decode(found, skip_special_tokens=True) == prompt + sample.text
    texts.add(sample.text)
  assert len(texts) == 4


def test_the_page_draws_from_all_tokens(gpt2_folder):
  """Its call without `top_p`: the library alone would draw from the 50 most probable ones."""
  page = (gpt2_folder / "README.md").read_text()
  [call] = re.findall(r"model\.generate\(.*, (do_sample=.*)\)", page)
  options = {name: ast.literal_eval(value) for name, value in (each.split("=") for each in call.split(", "))}
  assert options.pop("top_p") == 0.95
  peer = load("GPT2LMHeadModel", gpt2_folder)
  found = peer.generate(
    torch.tensor([[2]]), max_length=2, output_scores=True, return_dict_in_generate=True, **options
  ).scores[0]
  assert torch.isfinite(found).sum() == exported.VOCAB - len(peer.generation_config.suppress_tokens)


@pytest.mark.parametrize("to", ["gpt2", "bert"])
def test_a_folder_that_the_library_saved_again_needs_the_vocabulary(request, tmp_path, to):
  folder = request.getfixturevalue(f"{to}_folder")
  again, kind = tmp_path / "again", {"gpt2": "GPT2LMHeadModel", "bert": "BertForPreTraining"}[to]
  load(kind, folder).save_pretrained(again)
  transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(again)
  with pytest.raises(
    InputError, match=r"an exported run, which `import` reads from tokenizer.model: if it is one, copy"
  ):
    import_model(again, tmp_path / "refused", to)
  shutil.copy(folder / "tokenizer.model", again)
  for name, source in (("first", folder), ("second", again)):
    import_model(source, tmp_path / name, to)
  first, second = (tmp_path / name for name in ("first", "second"))
  assert (first / "tokenizer.model").read_bytes() == (second / "tokenizer.model").read_bytes()
  of_first, of_second = (safetensors.numpy.load_file(path / "model.safetensors") for path in (first, second))
  assert of_first.keys() == of_second.keys()
  assert all(np.array_equal(array, of_second[name]) for name, array in of_first.items())


def bert_peer(kind, folder, sides, unused=()):
  """For the batch what the library's model gives."""
  with torch.inference_mode():
    return load(kind, folder, unused)(
      torch.tensor(TOKENS), attention_mask=torch.tensor(VALID).long(), token_type_ids=torch.tensor(sides)
    )


@pytest.mark.parametrize("options", VARIANTS)
def test_bert_logits(tmp_path, options):
  config, sides = dataclasses.replace(BERT_CONFIG, **options), sides_of_batch()
  folder = export(config, tmp_path, "bert")
  logits, hidden, following = bert_outputs(config, params_of(config), TOKENS, sides, VALID)
  peer = bert_peer("BertForPreTraining", folder, sides)
  assert_close(peer.prediction_logits.numpy()[VALID], logits[VALID])
  assert_close(peer.seq_relationship_logits.numpy(), following[:, ::-1])  # class 0 there is "follows"
  if not options:
    trunk = bert_peer("BertModel", folder, sides, ["cls"])
    assert_close(trunk.last_hidden_state.numpy()[VALID], hidden[VALID])
    masked = bert_peer("BertForMaskedLM", folder, sides, ["bert", "cls"])  # the pooler, and the pairs of texts
    assert_close(masked.logits.numpy()[VALID], logits[VALID])


def test_classifier_logits(tmp_path):
  config, sides = BERTClassifierConfig(**SIZES, labels="en,de,ko"), np.zeros_like(sides_of_batch())
  folder = export(config, tmp_path, "bert")
  found = bert_peer("BertForSequenceClassification", folder, sides).logits.numpy()
  assert_close(found, bert_outputs(config, params_of(config), TOKENS, sides, VALID)[0])
  assert load("BertForSequenceClassification", folder).config.id2label == {0: "en", 1: "de", 2: "ko"}


HARD = [
  *("", " ", "\n", "\n\n a\n", "a", " a", "a ", "  a  b ", "ab\ncd", "ab\n\n\ncd\n", "\r\n a\t\u3000b", "\0a\u2585"),
  *(
    "한국어 \uac04",
    "\U0001f600 ﬁ e\u0301",
    "\u2581a\u2581\u2581 b\u2581",
    "<0x41><0xE2>",
    "a" * 500,
    " " * 50,
    "a . b , c n't",
  ),
]
NAMES = ["</s>", "<s>a</s> <unk>", "<pad>"]


def hard_texts():
  generator = random.Random(1)
  letters = "aabbcdefgh  é\nzq\u2581한\U0001f600"
  return [*HARD, *("".join(generator.choices(letters, k=generator.randint(1, 60))) for _ in range(997))]


def test_the_tokenizer_of_gpt2_begins_a_text_as_the_run_does(tmp_path):
  """With one token before and behind a text, as GPT-2 has it."""
  folder = export(dataclasses.replace(GPT2, begin=3), tmp_path, "gpt2")
  tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
  assert tokenizer("ab")["input_ids"] == [3, *encode_text(exported.tokenizer(), "ab")]
  assert (tokenizer.bos_token, tokenizer.eos_token, load("GPT2LMHeadModel", folder).config.bos_token_id) == (
    "</s>",
    "</s>",
    3,
  )


def test_the_tokenizer_of_gpt2_gives_the_same_tokens_and_texts(gpt2_folder):
  ours = exported.tokenizer()
  for tokenizer in (
    transformers.AutoTokenizer.from_pretrained(gpt2_folder),
    transformers.PreTrainedTokenizerFast.from_pretrained(gpt2_folder),
  ):
    for text in [*hard_texts(), *NAMES]:
      tokens = encode_text(ours, text)
      assert tokenizer(text)["input_ids"] == [2, *tokens], repr(text)
      assert tokenizer.decode(tokens) == tokenizer.decode([2, *tokens, 3], skip_special_tokens=True) == text
    tokens = list(range(260, exported.VOCAB))
    assert tokenizer.decode(tokens) == decode_text(ours, tokens)
    names = tokenizer.convert_ids_to_tokens(range(exported.VOCAB))
    assert names[:4] == ["<pad>", "<unk>", "<s>", "</s>"] and names[260:] == ours.pieces(range(260, exported.VOCAB))
    assert len(tokenizer) == exported.VOCAB


def test_the_tokenizer_of_bert_gives_the_same_tokens(bert_folder):
  tokenizer, ours = transformers.AutoTokenizer.from_pretrained(bert_folder), exported.tokenizer()
  for text in hard_texts():
    assert tokenizer(text)["input_ids"] == [2, *encode_text(ours, text), 3], repr(text)
  pair = tokenizer("ab", "cd e")
  first, second = ours.encode_batch(["ab", "cd e"])
  assert pair["input_ids"] == [2, *first, 3, *second, 3]
  assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
  assert tokenizer.mask_token_id == 1 and tokenizer("a <unk>")["input_ids"].count(1) == 1


def test_the_tokenizer_with_few_letters_and_many_merges(tmp_path):
  """Where a piece can be made in several ways, as `anana`, and long pieces overlap."""
  generator = random.Random(2)
  lines = ["".join(generator.choices("ab ", weights=[5, 4, 1], k=60)) for _ in range(300)]
  ours = SentencePieceTokenizer.learn(lines, 600)
  from transformer_jax.interchange import hf_tokenizer

  hf_tokenizer.write(tmp_path, ours, ["$A"], ["$A", "$B"], {"model_max_length": 99})
  tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
  for _ in range(997):
    text = "".join(generator.choices("abb ", k=generator.randint(1, 90)))
    assert tokenizer(text)["input_ids"] == encode_text(ours, text), repr(text)


@pytest.mark.parametrize(
  ("to", "model", "message"),
  [
    ("gpt2", dataclasses.replace(GPT2, pre_norm=False), "config.model.pre_norm is False, but the format gpt2 has only"),
    ("bert", dataclasses.replace(BERT_CONFIG, pre_norm=True), "config.model.pre_norm is True, but the format bert has"),
    ("bert", GPT2, "the format bert has no gpt model: choose --to safetensors"),
    ("gpt2", BERT_CONFIG, "the format gpt2 has no bert model"),
    ("marian-hf", BERT_CONFIG, "the format marian-hf has no bert model"),
  ],
)
def test_what_it_cannot_express_is_refused(tmp_path, to, model, message):
  with pytest.raises(InputError, match=message):
    export(model, tmp_path, to)


def test_the_files(gpt2_folder, bert_folder):
  common = {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model"}
  assert {path.name for path in bert_folder.iterdir()} == {*common, "README.md"}
  assert {path.name for path in gpt2_folder.iterdir()} == {*common, "README.md", "generation_config.json"}
  page = (gpt2_folder / "README.md").read_text()
  assert "# gpt\n" in page and '"data": "a text"' in page and "beam" not in page
  assert json.loads((bert_folder / "config.json").read_text())["layer_norm_eps"] == 1e-12

"""Folders that Hugging Face transformers write of BERT and GPT-2, as runs: logits, texts, tokens, and the way back."""

import json
import random
import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy

from tests.parity.language_outputs import batch, bert_outputs, gpt_logits, sides_of_batch
from tests.parity.peer import assert_close, required
from tests.parity.test_language_export import HARD
from transformer_jax import runs
from transformer_jax.data.documents import encode_text
from transformer_jax.decoding.generator import Generator
from transformer_jax.interchange.export import export
from transformer_jax.interchange.import_ import import_model
from transformer_jax.runtime.errors import InputError

torch = required("torch")
torch.set_num_threads(1)  # more only wait for each other
transformers = required("transformers")
tokenizers = required("tokenizers")

TEXT = ["hello world hello there", "low lower lowest", "한국어 é", "let's go,go! 1999"] * 20
WORDS = [
  *("[PAD]", "[unused0]", "the", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", "!", ",", "가", "e", "##c", "é"),
  *("x", "##x", "##xx", "日", "##e", "A"),
]
LAYERS = {"hidden_size": 22, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 29}
BERT_SIZES = {**LAYERS, "vocab_size": len(WORDS), "max_position_embeddings": 31}
GPT2_SIZES = {"n_embd": 22, "n_layer": 2, "n_head": 2, "n_positions": 31}


@pytest.fixture(scope="module")
def bytes_vocabulary(tmp_path_factory):
  """The folder of a vocabulary as GPT-2 has one, and its size."""
  folder = tmp_path_factory.mktemp("vocabulary")
  learner = tokenizers.ByteLevelBPETokenizer()
  learner.train_from_iterator(TEXT, vocab_size=299, special_tokens=["<|endoftext|>"], min_frequency=1)
  learner.save_model(str(folder))
  return folder, learner.get_vocab_size()


def saved(folder, kind, config, dtype=None):
  """A model of the library with random weights, saved in the folder."""
  torch.manual_seed(0)
  peer = getattr(transformers, kind)(config)
  with torch.no_grad():
    for parameter in peer.parameters():
      parameter += 0.1 * torch.randn(parameter.shape)
  peer.to(dtype or torch.float32).save_pretrained(folder)
  return peer.float().eval()


def gpt2(folder, vocabulary, kind="GPT2LMHeadModel", dtype=None, **options):
  tokens, size = vocabulary
  config = transformers.GPT2Config(
    **{**GPT2_SIZES, "vocab_size": size, "bos_token_id": 0, "eos_token_id": 0, **options}
  )
  peer = saved(folder, kind, config, dtype)
  for name in ("vocab.json", "merges.txt"):
    shutil.copy(tokens / name, folder)
  return peer


def bert(folder, kind="BertForPreTraining", words=WORDS, dtype=None, **options):
  peer = saved(folder, kind, transformers.BertConfig(**{**BERT_SIZES, **options}), dtype)
  (folder / "vocab.txt").write_text("\n".join(words) + "\n")
  return peer


def imported(folder, tmp_path, name):
  import_model(folder, tmp_path / "run", name)
  return runs.open(tmp_path / "run").model()


GPT2_VARIANTS = {
  "usual": {},
  "other options": {"n_inner": 29, "activation_function": "relu", "layer_norm_epsilon": 1e-3, "n_head": 11},
  "swish, without a head": {"kind": "GPT2Model", "activation_function": "silu", "n_layer": 3},
  "more rows than pieces": {"vocab_size": 331, "activation_function": "gelu"},
  "float16": {"dtype": torch.float16},
}


@pytest.mark.parametrize(
  "name", [name if name == "usual" else pytest.param(name, marks=pytest.mark.long) for name in GPT2_VARIANTS]
)
def test_gpt2_logits_and_the_way_back(tmp_path, bytes_vocabulary, name):
  options = GPT2_VARIANTS[name]
  peer = gpt2(tmp_path / "theirs", bytes_vocabulary, **options)
  model = imported(tmp_path / "theirs", tmp_path, "gpt2")
  tokens, _ = batch(model.config.model.vocab_size)
  with torch.inference_mode():
    if options.get("kind"):
      expected = peer(torch.tensor(tokens)).last_hidden_state @ peer.wte.weight.T
    else:
      expected = peer(torch.tensor(tokens)).logits
  assert_close(gpt_logits(model.config.model, model.params, tokens), expected.numpy())
  assert_same_files(tmp_path, "gpt2", "transformer.")


def test_a_gpt2_that_begins_with_a_row_without_a_piece_is_exported(tmp_path, bytes_vocabulary):
  gpt2(tmp_path / "theirs", bytes_vocabulary, vocab_size=331, bos_token_id=330)
  assert imported(tmp_path / "theirs", tmp_path, "gpt2").config.model.begin == 330
  export(tmp_path / "run", tmp_path / "back", "gpt2")
  template = json.loads((tmp_path / "back" / "tokenizer.json").read_text())["post_processor"]
  assert [each["ids"] for each in template["special_tokens"].values()] == [[330]]


def assert_same_files(tmp_path, to, prefix, also=frozenset()):
  """The exported arrays are those that were imported, bit for bit, and `also`."""
  export(tmp_path / "run", tmp_path / "back", to)
  theirs, back = (safetensors.numpy.load_file(tmp_path / side / "model.safetensors") for side in ("theirs", "back"))
  named = {name if name in back else prefix + name: array for name, array in theirs.items()}
  assert back.keys() - named.keys() == also and named.keys() <= back.keys()
  for name, array in named.items():
    np.testing.assert_array_equal(back[name], array.astype(np.float32), name)


@pytest.mark.long
def test_greedy_texts(tmp_path, bytes_vocabulary):
  peer = gpt2(tmp_path / "theirs", bytes_vocabulary)
  import_model(tmp_path / "theirs", tmp_path / "run", "gpt2")
  generator, tokenizer = (
    Generator.load(tmp_path / "run"),
    transformers.GPT2Tokenizer.from_pretrained(tmp_path / "theirs"),
  )
  for prompt in ["", "hello\n\n ", "한 low"]:
    [sample] = generator.generate(prompt, max_tokens=7, temperature=0)
    inputs = torch.tensor([[0, *tokenizer(prompt)["input_ids"]]], dtype=torch.long)
    [found] = peer.generate(inputs, max_length=inputs.shape[1] + 7, do_sample=False, pad_token_id=0).tolist()
    assert len(found) - inputs.shape[1] == sample.tokens
    assert tokenizer.decode(found, skip_special_tokens=True) == prompt + sample.text
  assert generator.attention("low").read == ("<|endoftext|>", "low")
  export(tmp_path / "run", tmp_path / "back", "gpt2")
  ours = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
  for text in ["", "hello\n\n ", "한 low", "<|endoftext|>"]:
    assert ours(text)["input_ids"][:1] == [0]  # the token before a text
    assert ours(text)["input_ids"][1:] == tokenizer(text, split_special_tokens=True)["input_ids"]


PREDICTIONS = {f"cls.predictions.{name}" for name in ("bias", "transform.dense.weight", "transform.dense.bias")} | {
  f"cls.predictions.transform.LayerNorm.{name}" for name in ("weight", "bias")
}
POOLER, PAIRS = (
  {f"{layer}.{name}" for name in ("weight", "bias")} for layer in ("bert.pooler.dense", "cls.seq_relationship")
)
BERT_VARIANTS = {
  "usual": ({}, set()),
  "other options": (
    {"hidden_act": "relu", "layer_norm_eps": 1e-3, "num_attention_heads": 11, "vocab_size": len(WORDS) + 3}, set()
  ),
  "masked tokens": ({"kind": "BertForMaskedLM", "hidden_act": "gelu_new"}, POOLER | PAIRS),
  "trunk": ({"kind": "BertModel", "hidden_act": "silu"}, PREDICTIONS | PAIRS),
  "pairs": ({"kind": "BertForNextSentencePrediction"}, PREDICTIONS),
  "classes": ({"kind": "BertForSequenceClassification", "num_labels": 3}, set()),
}  # fmt: skip


@pytest.mark.parametrize(
  "name", [name if name == "usual" else pytest.param(name, marks=pytest.mark.long) for name in BERT_VARIANTS]
)
def test_bert_logits_and_the_way_back(tmp_path, name):
  options, new = BERT_VARIANTS[name]
  peer = bert(tmp_path / "theirs", **options)
  model = imported(tmp_path / "theirs", tmp_path, "bert")
  tokens, valid = batch(len(WORDS))
  sides = sides_of_batch()
  order = np.array(model.tokenizer.vocabulary.order)
  assert order[:4].tolist() == [0, 6, 4, 5]
  with torch.inference_mode():
    expected = peer(
      torch.tensor(order[tokens]), attention_mask=torch.tensor(valid).long(), token_type_ids=torch.tensor(sides)
    )
  logits, hidden, *following = bert_outputs(model.config.model, model.params, tokens, sides, valid)
  match name:
    case "masked tokens":
      assert_close(logits[valid], expected.logits.numpy()[:, :, order][valid])
    case "pairs":
      assert_close(following[0], expected.logits.numpy()[:, ::-1])
    case "trunk":
      assert_close(hidden[valid], expected.last_hidden_state.numpy()[valid])
    case "classes":
      assert_close(logits, expected.logits.numpy())
      assert model.config.model.classes == ["LABEL_0", "LABEL_1", "LABEL_2"]
    case _:
      assert_close(logits[valid], expected.prediction_logits.numpy()[:, :, order][valid])
      assert_close(following[0], expected.seq_relationship_logits.numpy()[:, ::-1])
  assert_same_files(tmp_path, "bert", "bert.", new)


def test_an_older_file(tmp_path):
  """pytorch_model.bin with the names of the first BERT, and constants that were saved with the parameters."""
  bert(tmp_path / "theirs")
  import_model(tmp_path / "theirs", tmp_path / "run", "bert")
  arrays = safetensors.numpy.load_file(tmp_path / "theirs" / "model.safetensors")
  (tmp_path / "theirs" / "model.safetensors").unlink()
  older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
  state = {}
  for name, array in arrays.items():
    end = ".".join(name.split(".")[-2:])
    state[name.replace(end, older.get(end, end))] = torch.tensor(array)
  state["bert.embeddings.position_ids"] = torch.arange(31)[None]
  state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"].clone()
  torch.save(state, tmp_path / "theirs" / "pytorch_model.bin")
  import_model(tmp_path / "theirs", tmp_path / "again", "bert")
  found, expected = (runs.open(tmp_path / name).model().params for name in ("again", "run"))
  jax.tree.map(np.testing.assert_array_equal, found, expected)


def hard_texts(letters):
  generator = random.Random(1)
  return [*HARD, *("".join(generator.choices(letters, k=generator.randint(1, 60))) for _ in range(499))]


@pytest.mark.parametrize("form", ["older", "tokenizer.json"])
def test_tokens_of_gpt2(tmp_path, bytes_vocabulary, form):
  gpt2(tmp_path / "theirs", bytes_vocabulary)
  if form == "tokenizer.json":
    transformers.GPT2Tokenizer.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "saved")
    for name in ("tokenizer.json", "tokenizer_config.json"):
      shutil.copy(tmp_path / "saved" / name, tmp_path / "theirs")
    for name in ("vocab.json", "merges.txt"):
      (tmp_path / "theirs" / name).unlink()
  ours = imported(tmp_path / "theirs", tmp_path, "gpt2").tokenizer
  export(tmp_path / "run", tmp_path / "back", "gpt2")
  theirs, back = (transformers.AutoTokenizer.from_pretrained(tmp_path / name) for name in ("theirs", "back"))
  for text in hard_texts("helo wrt'sd  \n19한é!\u2581\U0001f600"):
    tokens = encode_text(ours, text)
    assert theirs(text)["input_ids"] == tokens and back(text)["input_ids"] == [0, *tokens], repr(text)
    assert ours.decode(tokens) == text
  assert back.eos_token == "<|endoftext|>" and ours.decode([0]) == "" and len(back) == len(theirs)


@pytest.mark.parametrize(
  "settings", [{}, {"do_lower_case": False}, {"strip_accents": False, "tokenize_chinese_chars": False}]
)
@pytest.mark.parametrize("form", ["older", "tokenizer.json"])
def test_tokens_of_bert(tmp_path, form, settings):
  bert(tmp_path / "theirs")
  (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(settings))
  if form == "tokenizer.json":
    transformers.BertTokenizer.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").unlink(missing_ok=True)
  model = imported(tmp_path / "theirs", tmp_path, "bert")
  export(tmp_path / "run", tmp_path / "back", "bert")
  theirs, back = (transformers.AutoTokenizer.from_pretrained(tmp_path / name) for name in ("theirs", "back"))
  order = model.tokenizer.vocabulary.order
  for text in hard_texts("abcexxéÉA,! \n가日Ⓐ"):
    tokens = [order[token] for token in model.tokenizer.encode(text)]
    assert theirs(text)["input_ids"] == back(text)["input_ids"] == [4, *tokens, 5], repr(text)


@pytest.mark.parametrize("settings", [{}, {"do_lower_case": True}, {"tokenizer_class": "PreTrainedTokenizerFast"}])
@pytest.mark.parametrize("accents", [None, True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_a_folder_is_refused_or_has_the_tokens_of_the_library(tmp_path, lower, accents, settings):
  """The library's BERT takes from tokenizer_config.json, or its defaults, what tokenizer.json says as well."""
  bert(tmp_path / "theirs")
  transformers.BertTokenizer.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "theirs")
  (tmp_path / "theirs" / "vocab.txt").unlink(missing_ok=True)
  path = tmp_path / "theirs" / "tokenizer.json"
  content = json.loads(path.read_text())
  content["normalizer"] |= {"lowercase": lower, "strip_accents": accents}
  path.write_text(json.dumps(content))
  (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(settings))
  try:
    tokenizer = imported(tmp_path / "theirs", tmp_path, "bert").tokenizer
  except InputError as error:
    assert "tokenizer_config.json: " in str(error) and (lower, accents) not in ((True, None), (True, True))
    assert "tokenizer_class" not in settings
    return
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
  for text in hard_texts("abcexxéÉA,! \n가日Ⓐ"):
    tokens = [tokenizer.vocabulary.order[token] for token in tokenizer.encode(text)]
    assert theirs(text, add_special_tokens=False)["input_ids"] == tokens, repr(text)


@pytest.mark.parametrize(
  ("name", "changes", "message"),
  [
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True, but must be False"),
    ("gpt2", {"activation_function": "tanh"}, "activation_function is 'tanh', but must be"),
    ("gpt2", {"n_layer": 3}, r"has no transformer.h.2\S+, which a model of these sizes has"),
    ("gpt2", {"n_layer": 10**9}, "n_layer is 1000000000, but must be a whole number from 1 to"),
    ("gpt2", {"n_positions": 30}, r"wpe.weight has shape \(31, 22\)"),
    ("gpt2", {"eos_token_id": 50256}, "eos_token_id is 50256, but must be a whole number from 0 to"),
    ("gpt2", {"num_attention_heads": 11}, "num_attention_heads is 11, but must be 2: it is another name of n_head"),
    ("gpt2", {"model_type": "bert"}, "model_type is 'bert', but must be 'gpt2'"),
    ("bert", {"is_decoder": True}, "is_decoder is True, but must be False"),
    ("bert", {"type_vocab_size": 3}, "type_vocab_size is 3, but must be 2"),
    ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key', but must be"),
    ("bert", {"num_attention_heads": 3}, "num_heads is 3, which does not divide"),
  ],
)
def test_what_cannot_be_had_here_is_refused(folders, tmp_path, name, changes, message):
  shutil.copytree(folders / name, tmp_path / "theirs")
  path = tmp_path / "theirs" / "config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | changes))
  with pytest.raises(InputError, match=message) as error:
    import_model(tmp_path / "theirs", tmp_path / "run", name)
  assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def folders(tmp_path_factory, bytes_vocabulary):
  """A folder of each kind, to damage copies of."""
  folder = tmp_path_factory.mktemp("folders")
  gpt2(folder / "gpt2", bytes_vocabulary)
  bert(folder / "bert")
  return folder


@pytest.mark.parametrize("kind", ["BertForQuestionAnswering", "BertForTokenClassification"])
def test_a_model_with_another_head_is_refused(tmp_path, kind):
  bert(tmp_path / "theirs", kind)
  with pytest.raises(InputError, match=f"architectures names {kind}, but the format takes BertModel, "):
    import_model(tmp_path / "theirs", tmp_path / "run", "bert")


def test_arrays_that_no_model_here_has_are_refused(tmp_path):
  bert(tmp_path / "theirs", "BertForQuestionAnswering")
  settings = json.loads((tmp_path / "theirs" / "config.json").read_text())
  del settings["architectures"]
  (tmp_path / "theirs" / "config.json").write_text(json.dumps(settings))
  with pytest.raises(InputError, match=r"'bert.qa_outputs.(bias|weight)', which the model here does not have"):
    import_model(tmp_path / "theirs", tmp_path / "run", "bert")

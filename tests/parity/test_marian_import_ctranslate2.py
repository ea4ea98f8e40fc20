"""An imported MarianMT against what CTranslate2's own converter makes of the same folder.

The converter has two things of OPUS-MT built in. It takes PAD, the last piece, out of the vocabulary. So PAD has no
probability, as with `config.decode.renormalize` here and `renormalize_logits` in transformers. And the decoder begins
with zeros. So it computes the same only if PAD's embedding is 0, as it is in OPUS-MT.
"""

import jax
import numpy as np
import pytest
import sentencepiece

from tests.parity import exported, marian_folder
from tests.parity.peer import required
from transformer_jax import runs
from transformer_jax.decoding.translator import Translator
from transformer_jax.interchange.export import export
from transformer_jax.interchange.import_ import import_model
from transformer_jax.model.special_tokens import PAD
from transformer_jax.runtime.errors import InputError

required("torch").set_num_threads(1)  # more only wait for each other
required("transformers")
ctranslate2 = required("ctranslate2")

ALPHA, TOLERANCE = 0.8, 1e-4
SEARCH = {"num_beams": 4, "length_penalty": ALPHA, "early_stopping": True, "renormalize_logits": True}
OPTIONS = {"as OPUS-MT": {}, "separate embeddings": {"share_encoder_decoder_embeddings": False}}
# The folder that was imported, and the one that the run was exported to.
FOLDERS = [(options, folder) for options in OPTIONS for folder in ("hf", "again")]


@pytest.fixture(scope="module", params=FOLDERS, ids=", ".join)
def both(request, tmp_path_factory):
  """The run, and CTranslate2's model of a folder."""
  options, converted = request.param
  folder = tmp_path_factory.mktemp("both")
  marian_folder.write(folder / "hf", SEARCH, pad=0.0, **OPTIONS[options])
  import_model(folder / "hf", folder / "run", "marian-hf")
  export(folder / "run", folder / "again", "marian-hf")
  ctranslate2.converters.TransformersConverter(str(folder / converted)).convert(str(folder / "ctranslate2"))
  theirs = ctranslate2.Translator(str(folder / "ctranslate2"), device="cpu", compute_type="float32", intra_threads=1)
  return folder / "run", theirs


def spelled(run, side, texts):
  """The pieces of texts without EOS, as both libraries number them: a piece without a number is <unk>."""
  processor = sentencepiece.SentencePieceProcessor(model_file=str(run.parent / "hf" / f"{side}.spm"))
  known = set(marian_folder.pieces(*marian_folder.LANGUAGES))
  return [[piece if piece in known else "<unk>" for piece in processor.encode(text, out_type=str)] for text in texts]


def test_the_export_to_the_library_is_refused(both, tmp_path):
  run, _ = both
  with pytest.raises(InputError, match="the imported run does not number its pieces as its SentencePiece model does"):
    export(run, tmp_path / "model", "ctranslate2")
  assert not [*tmp_path.iterdir()]


def test_log_probabilities_of_given_outputs(both):
  run, theirs = both
  model, sides = runs.open(run).model(), []
  texts = [marian_folder.lines(side)[:13] for side in marian_folder.LANGUAGES]
  for side, lines in zip((model.tokenizer.source, model.tokenizer.target), texts, strict=True):
    sides.append([[*tokens, 3] for tokens in side.encode_batch(lines)])
  logits = exported.our_logits(model.config, jax.device_get(model.params), *sides)
  without_pad = [np.where(np.arange(rows.shape[1]) == PAD, -np.inf, rows) for rows in logits]
  pieces = [spelled(run, side, lines) for side, lines in zip(marian_folder.LANGUAGES, texts, strict=True)]
  # The converter does not tell the library to end a source with EOS, as the library's users do it.
  found = theirs.score_batch([[*source, "</s>"] for source in pieces[0]], pieces[1])
  for ours, scores in zip(exported.log_probs(without_pad, sides[1]), found, strict=True):
    np.testing.assert_allclose(scores.log_probs, ours, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_and_scores(both, beam):
  """Each sentence by itself, as the library's limit is one number for all. At the limit its outputs have no EOS."""
  run, theirs = both
  translator, compared = Translator.load(run), 0
  lines = marian_folder.lines("source")
  ours = translator.translate(lines, beam_size=beam, return_scores=True)
  for source, translation in zip(spelled(run, "source", lines), ours, strict=True):
    limit = len(source) + 1 + translator.config.decode.extra_length
    [found] = theirs.translate_batch(
      [[*source, "</s>"]],
      **{"beam_size": beam, "patience": 1, "length_penalty": ALPHA, "return_scores": True},
      **{"min_decoding_length": 0, "max_decoding_length": limit},
    )
    if translation.tokens < limit:
      processor = sentencepiece.SentencePieceProcessor(model_file=str(run.parent / "hf" / "target.spm"))
      pieces = ["\ufffd" if piece == "<unk>" else piece for piece in found.hypotheses[0]]
      assert processor.decode(pieces).replace("\u2581", " ").strip() == translation.text
      assert found.scores[0] == pytest.approx(translation.score, abs=TOLERANCE)
      compared += len(translation.text) > 0
  assert compared > 4

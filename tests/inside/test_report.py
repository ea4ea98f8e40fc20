"""The page of a report: what it shows is what the run folder and sacreBLEU say, and nothing of it runs or loads."""

import base64
import hashlib
import json
import shutil
import tarfile
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from etils import epath

from tests.inside.test_scored import without_attention
from transformer_jax import runs
from transformer_jax.config import Config, Corpus, DataConfig, TrainConfig
from transformer_jax.decoding.attention import Attention
from transformer_jax.inside import log, report
from transformer_jax.inside.facts import _checkpoints, _of_data, _starts, _vocabulary, config_of, facts_of
from transformer_jax.inside.log import Sample
from transformer_jax.inside.scored import Text, Translations, scored
from transformer_jax.interchange.export import export
from transformer_jax.language.config import BERTClassifierConfig
from transformer_jax.model.config import Dtype, ModelConfig
from transformer_jax.runs import averaging
from transformer_jax.runtime.errors import InputError

ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \" ' & \ud800"
OLDER = Path(__file__).parents[1] / "runs" / "older" / "run.tar.xz"


class Page(HTMLParser):
  """The elements of a page, the text inside of elements, and its data."""

  def __init__(self, content: bytes):
    super().__init__()
    self.elements: list[tuple[str, dict[str, str | None]]] = []
    self.texts: dict[str, list[str]] = {}
    self._open: list[str] = []
    self.feed(content.decode())
    self.data = json.loads(next(text for text in self.texts["script"] if text.startswith("{")))
    self.text = " ".join(
      text for name, texts in self.texts.items() if name not in ("script", "style") for text in texts
    )

  def handle_starttag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))
    self._open.append(tag)

  def handle_endtag(self, tag):
    while self._open and self._open.pop() != tag:
      pass

  def handle_data(self, data):
    self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)


@pytest.fixture(scope="module")
def older(tmp_path_factory):
  """A run folder of version 0.1.0."""
  folder = tmp_path_factory.mktemp("runs") / "older"
  with tarfile.open(OLDER) as archive:
    archive.extractall(folder, filter="data")
  return folder


@pytest.fixture
def folder(older, tmp_path):
  """A run folder whose small files a test may change."""
  copy = shutil.copytree(older, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
  (copy / "checkpoints").mkdir()
  return copy


def log_of(folder):
  return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def add_validation(folder, step, **values):
  with open(folder / "metrics.jsonl", "a") as file:
    file.write(json.dumps({"step": step, "split": "validation", **values}) + "\n")


def sample(translation, source="a", reference="b"):
  return {"source": source, "translation": translation, "reference": reference}


def page_of(*folders, **options) -> Page:
  return Page(report.render([runs.open(folder) for folder in folders], **options))


def made(lines, pairs, attend=without_attention):
  return Translations(Text("a text", pairs), lines, 7, "13a", False, attend)


def attend(source, target):
  """Uniform weights over tokens that attack the page."""
  return Attention((ATTACK, "b"), ("c",), (ATTACK,), {"cross": np.full((2, 3, 1, 2), 0.5, np.float32)})


def test_an_attention_that_is_wider_than_the_page_is_scrolled(older):
  tokens = tuple(f"{number}" for number in range(61))
  found = Attention(tokens, tokens, tokens, {"cross": np.full((1, 1, 61, 61), 1 / 61, np.float32)})
  texts = [made(["x", "y"], [("a", "x"), ("b", "z")], lambda source, target: found)]
  page = report.render([runs.open(older)], scored(texts)).decode()
  assert page.count('<svg class="matrix"') == page.count('<div class="wide"><svg class="matrix"') > 0
  assert ".wide { overflow-x: auto; }" in page


def assert_harmless(page: Page):
  """No element that loads, no handler, no address, and no script but the page's own."""
  assert not {tag for tag, _ in page.elements} & {"img", "iframe", "link", "object", "embed", "base", "form", "a"}
  names = {name for _, attributes in page.elements for name in attributes}
  assert not {name for name in names if name.startswith("on")} and not names & {"src", "href", "style", "action"}
  policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
  assert policy is not None and policy.startswith("default-src 'none'; ")
  [style] = page.texts["style"]
  script, data = sorted(page.texts["script"], key=lambda text: text.startswith("{"))
  assert len([tag for tag, _ in page.elements if tag == "script"]) == 2 and json.loads(data)
  for text in (style, script):
    assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "//" not in text.replace("// ", "") and "url(" not in text and "import" not in text


def test_an_older_run_shows_its_log_and_its_config(older):
  page = page_of(older)
  assert_harmless(page)
  lines = log_of(older)
  assert page.data["runs"] == ["older"] and page.data["scored"] == []
  for name, curve in page.data["curves"].items():
    for line in curve["lines"]:
      logged = [entry for entry in lines if entry["split"] == line["split"] and name in entry]
      assert line["steps"] == [entry["step"] for entry in logged]
      assert line["values"] == [entry[name] for entry in logged]
  assert {"loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second"} <= page.data["curves"].keys()
  config = json.loads((older / "config.json").read_text())
  codes = page.texts["code"]
  assert {f"{group}.{key}" for group in ("data", "train") for key in config[group]} <= {*codes}
  assert codes[codes.index("train.steps") + 1] == str(config["train"]["steps"])
  provenance = json.loads((older / "provenance.json").read_text())
  assert all(f"{name} {version}" in page.text for name, version in provenance[-1]["versions"].items())
  assert "not recorded" in page.text  # the counts of the text, which version 0.1.0 did not keep


def test_averaging_and_exporting_are_told_apart_from_training(older, tmp_path):
  """Their entries of the provenance have no machine, no versions and no text; and nobody can train on from them."""
  averaged, exported = tmp_path / "averaged", tmp_path / "exported"
  steps = averaging.average(older, averaged, last=1)
  export(averaged, exported, "safetensors")
  opened = map(runs.open, (older, averaged, exported))
  trained, *others = (facts_of(run, log.read(run.path))[0] for run in opened)
  for facts, run in zip(others, (older, "older"), strict=True):  # what is exported has no paths
    same = ("trained on", "versions", "started")
    assert [facts[name] for name in same] == [trained[name] for name in same] != ["not recorded"] * 3
    assert facts["averaged from"] == f"steps {steps[0]} of {run}"
    assert "updates" in trained and "updates" not in facts  # of which there is no log
  for folder, offered in ((older, True), (averaged, False), (exported, False)):
    text = page_of(folder).text
    assert ("transformer-jax train --workdir" in text) == offered


def test_counts_of_the_text_are_shown(folder):
  packing = {
    "rows": 7,
    "tokens": 672,
    "sides": 2,
    "found": {"pairs": 40, "source tokens": 300, "target tokens": 372},
    "left_out": {"pairs skipped, with an empty side": 3},
  }
  (folder / "provenance.json").write_text(json.dumps([{"data": "x", "packing": packing}]))
  length = runs.open(folder).config.data.row_length
  text = page_of(folder).text
  assert f"40 pairs, 300 source tokens, 372 target tokens; 7 rows of {length}" in text
  assert "on average 7.5 source tokens and 9.3 target tokens" in text
  assert f"{1 - 672 / (2 * 7 * length):.1%} of the positions" in text
  assert "3 pairs skipped, with an empty side" in text


def test_counts_of_a_text_in_shards_claim_nothing_of_its_rows(folder):
  found = {"pairs, before any is left out": 271, "shards, which are packed during the run": 8}
  packing = {"rows": 0, "tokens": 0, "sides": 2, "found": found, "left_out": {}}
  (folder / "provenance.json").write_text(json.dumps([{"packing": packing}]))
  text = page_of(folder).text
  assert "271 pairs, before any is left out, 8 shards, which are packed during the run" in text
  assert "0 rows of" not in text and "0.0 shards" not in text and "100.0%" not in text


@pytest.mark.parametrize(
  "packing", [7, {}, {"rows": "x"}, {"rows": 1, "tokens": 2, "sides": 1, "found": {"a": "b"}, "left_out": {}}]
)
def test_counts_of_another_form_are_not_shown(folder, packing):
  (folder / "provenance.json").write_text(json.dumps([{"packing": packing, "time": 3, "machine": [], "versions": 0}]))
  assert "not recorded" in page_of(folder).text


def test_what_a_run_folder_or_a_model_writes_is_escaped(folder):
  values = {"bleu": 3.0, "bleu_signature": ATTACK, "samples": [sample(ATTACK, ATTACK, ATTACK)]}
  add_validation(folder, 900, **values)
  (folder / "provenance.json").write_text(json.dumps([{"time": ATTACK, "data": "x", "machine": {ATTACK: ATTACK}}]))
  config = json.loads((folder / "config.json").read_text())
  config["data"]["train"] = ATTACK
  (folder / "config.json").write_text(json.dumps(config))
  pairs = [(ATTACK, ATTACK), ("one", "two"), ("three", "four")]
  for page in (
    page_of(folder),
    page_of(folder, scored=scored([made([ATTACK, ATTACK, "vier"], pairs, attend)]), notes=[ATTACK]),
  ):
    assert_harmless(page)
    assert page.text.count("<img src=x onerror=alert(2)>") > 3  # as text


def test_scores_are_those_that_were_computed(older):
  pairs = [("one two three", "eins zwei drei"), ("four five", "vier fünf"), ("six", "sechs"), ("a b", "a b")]
  [found] = scored([made(["eins zwei zwei", "vier fünf", "sieben", "a b"], pairs)])
  page = page_of(older, scored=[found])
  assert_harmless(page)
  [data] = page.data["scored"]
  assert data["scores"]["bleu"]["score"] == found.scores["bleu"].score
  assert data["groups"] == [vars(group) for group in found.groups]
  for value in found.scores.values():
    assert f"{value.score:.2f}" in page.text and value.signature in page.text
    assert f"± {value.margin:.2f}" in page.text
  for one in (*found.best, *found.worst):
    assert one.translation in page.text and f"{one.chrf:.1f}" in page.text
  assert page.texts["h4"] == ["Best", "Worst"]
  assert page.texts["b"][-4:] == [f"{one.chrf:.1f}" for one in (*found.best, *found.worst)]
  rows = [(f"{group.least}", f"{group.sentences}", f"{group.bleu:.2f}") for group in found.groups]  # each of one length
  first = page.texts["td"].index("1")
  assert page.texts["td"][first : first + 9] == [text for row in rows for text in row]


def test_a_run_on_trees_shows_f1(folder):
  config = json.loads((folder / "config.json").read_text())
  config["data"]["corpus"] = "grammar"
  (folder / "config.json").write_text(json.dumps(config))
  add_validation(folder, 901, loss=3.25, f1=41.25)
  page = page_of(folder)
  assert "41.25" in page.text and page.data["curves"]["f1"]["lines"][0]["values"] == [41.25]
  assert f"evaluate --workdir {folder} --source SENTENCES --reference TREES" in page.text
  assert "--report" not in page.text


def test_several_runs_are_side_by_side(older, folder):
  add_validation(folder, 901, loss=3.25)
  pairs = [("one two", "eins zwei"), ("three", "drei"), ("four", "vier")]
  both = scored([made(["eins", "drei", "vier"], pairs), made(["zwei", "drei", "fünf"], pairs)])
  page = page_of(older, folder, older, scored=[*both, both[0]])
  assert_harmless(page)
  assert page.data["runs"] == ["older (1)", "run", "older (2)"]
  loss = page.data["curves"]["loss"]["lines"]
  assert [(line["run"], line["split"]) for line in loss] == [(n, s) for n in range(3) for s in ("train", "validation")]
  assert loss[3]["steps"][-1] == 901 and loss[3]["values"][-1] == 3.25
  p_value = both[1].scores["bleu"].p_value
  assert p_value is not None and f"p = {p_value:.3f}" in page.text
  assert "about half the probability that chance alone" in page.text


def test_names_tell_the_runs_apart():
  assert report.names_of(["/a/runs/x", "/a/runs/y"]) == ["x", "y"]
  assert report.names_of(["/a/one/x", "/a/two/x"]) == ["one/x", "two/x"]
  assert report.names_of(["/a/x", "/a/x", "/a/y"]) == ["x (1)", "x (2)", "y"]


def test_translations_over_time():
  steps = [("x", 10), ("y", 20), ("y", 30), ("x", 40)]
  [history] = report.histories_of([(step, [Sample("a", text, "b")]) for text, step in steps])
  assert (history.source, history.reference, history.left_out) == ("a", "b", 0)
  assert history.changes == [(10, 10, "x"), (20, 30, "y"), (40, 40, "x")]
  [long] = report.histories_of([(step, [Sample("a", str(step), "b")]) for step in range(101)])
  first = [change.first for change in long.changes]
  assert first == sorted({*first}) and first[0] == 0 and first[-1] == 100 and len(first) + long.left_out == 101


def test_samples_of_the_log_are_shown(folder):
  for step, text in ((900, "zwischen"), (1000, "fertig")):
    add_validation(folder, step, loss=1.0, samples=[sample(text, "source of it", "fertig")])
  page = page_of(folder)
  cells = page.texts["td"]
  assert "zwischen" in cells and cells[cells.index("zwischen") - 1] == "900"
  assert "equals the reference" in page.texts["span"]


def test_samples_that_are_not_shown_are_counted(folder):
  add_validation(folder, 1000, samples=[sample("x", f"source {number}") for number in range(20)])
  text = page_of(folder).text
  assert "source 7" in text and "source 8" not in text
  assert "Of 20 sample sentences the first 8 are shown." in text


def test_a_key_with_its_default_is_known_as_one(folder):
  keys = config_of(runs.open(folder).config)
  assert keys["model.family"].default and keys["model.family"].value == "transformer"
  assert not keys["train.steps"].default


def test_a_log_with_ever_new_samples_makes_no_endless_page(folder):
  for step in range(900, 911):
    add_validation(folder, step, samples=[sample("x", f"source {step}")])
  text = page_of(folder).text
  assert "source 907" in text and "source 908" not in text
  assert "Of 11 sample sentences the first 8 are shown." in text


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff{[\n" * 5, b'{"step": 1, "split": "train", "loss": NaN}\n'])
def test_without_a_log_the_rest_is_shown(folder, content):
  (folder / "metrics.jsonl").unlink()
  if content is not None:
    (folder / "metrics.jsonl").write_bytes(content)
  page = page_of(folder)
  assert_harmless(page)
  assert page.data["curves"] == {} and "train.steps" in page.texts["code"]


def test_a_damaged_provenance_is_a_note(folder):
  (folder / "provenance.json").write_text("[{")
  assert "provenance.json cannot be read" in page_of(folder).text


def test_a_damaged_config_is_one_sentence(folder):
  (folder / "config.json").write_text("{")
  with pytest.raises(InputError, match=r"config\.json cannot be read"):
    page_of(folder)


def test_the_page_of_many_steps_is_small(folder):
  lines = (f'{{"step": {n}, "split": "train", "loss": {3 + n % 7}}}\n' for n in range(1, 30_012))
  (folder / "metrics.jsonl").write_text("".join(lines))
  content = report.render([runs.open(folder)])
  [line] = Page(content).data["curves"]["loss"]["lines"]
  assert len(content) < 150_000 and line["steps"][-1] == 30_011 and {*line["values"]} >= {3, 9}


def test_a_value_below_a_chart_says_of_which_step_it_is(folder):
  (folder / "metrics.jsonl").write_text('{"step": 250, "split": "train", "loss": 3.5}\n')
  add_validation(folder, 200, loss=3.25)
  page = page_of(folder)
  assert page.texts["output"][0] == "step 250"
  assert [text for text in page.texts["b"] if text.startswith("3.")][:2] == ["3.5", "3.25 at 200"]
  (folder / "metrics.jsonl").write_text('{"step": 100, "split": "train", "loss": 3.5}\n')
  assert page_of(folder).texts["output"][0] == "step 100"


def test_it_is_written_as_a_whole(older, tmp_path):
  output = epath.Path(tmp_path) / "page.html"
  report.write([runs.open(older)], output)
  assert output.read_bytes() == report.render([runs.open(older)])
  assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_numbers_at_the_top_are_the_last_ones(folder):
  for step, loss in ((901, 3.25), (902, 2.125)):
    add_validation(folder, step, loss=loss, bleu=10 * loss)
  page = page_of(folder)
  assert page.texts["dt"][:2] == ["BLEU", "validation loss"]
  assert page.texts["dd"][:4] == ["21.25", "step 902", "2.125", "step 902"]


def test_the_legend_names_training_and_validation(folder):
  (folder / "metrics.jsonl").write_text('{"step": 250, "split": "train", "loss": 3.5}\n')
  add_validation(folder, 250, loss=3.25)
  page = page_of(folder)
  assert [text.strip() for text in page.texts["li"] if text.strip()] == ["training", "validation"]
  assert f"evaluate --workdir {folder} --source PREFIX.en --reference PREFIX.de --report" in page.text


def test_what_was_done_is_added_up(folder):
  lines = (
    {"step": 100, "updates": 100, "skipped": 3, "seconds": 7000, "target_tokens": 250_000},
    {"step": 200, "updates": 100, "skipped": 1, "seconds": 200, "target_tokens": 250_001},
  )
  (folder / "metrics.jsonl").write_text("".join(json.dumps({"split": "train", **line}) + "\n" for line in lines))
  run = runs.open(folder)
  facts, _ = facts_of(run, log.read(run.path))
  assert facts["updates"] == f"200 of {run.config.train.steps:,}, 4 of 200 skipped"
  assert (facts["time"], facts["seen"]) == ("2 hours of updates", "500,001 target tokens")


def test_only_what_is_set_is_no_default():
  keys = config_of(Config(model=ModelConfig(dtype=Dtype.BFLOAT16), train=TrainConfig(steps=7)))
  set_here = {name: key.value for name, key in keys.items() if not key.default}
  assert set_here == {"model.dtype": "bfloat16", "train.steps": "7"}


def test_what_is_set_is_bold_and_what_differs_is_marked(older, folder):
  config = json.loads((folder / "config.json").read_text())
  config["train"]["seed"] = 7
  (folder / "config.json").write_text(json.dumps(config))
  page = report.render([runs.open(older), runs.open(folder)]).decode()
  cells = '<td><code>0</code></td><td><code class="changed">7</code></td>'
  assert f'<tr class="differs"><th scope="row"><code>train.seed</code></th>{cells}</tr>' in page
  assert page.count('class="differs"') == 1


@pytest.mark.parametrize(
  ("data", "train", "history", "expected"),
  [
    ({}, {}, [], "learned from the training text"),
    ({"tokenizer": "x.model"}, {}, [], "taken from x.model"),
    ({}, {"init_from": "runs/a"}, [], "that of the run runs/a"),
    ({}, {}, [{"imported": {"folder": "x"}}, {"data": "y"}], "that of the imported model"),
    ({"corpus": Corpus.PREPARED, "train": "rows"}, {}, [], "that of the prepared folder"),
  ],
)
def test_the_origin_of_the_vocabulary(data, train, history, expected):
  config = Config(data=DataConfig(**data), model=ModelConfig(vocab_size=31), train=TrainConfig(**train))
  assert _vocabulary(config, history) == f"31 pieces, {expected}"
  config.model = ModelConfig(vocab_size=31, source_vocab_size=37, share_embeddings=False)
  assert _vocabulary(config, history) == f"37 pieces for the source and 31 pieces for the target, {expected}"


def test_texts_starts_and_checkpoints_are_those_of_the_run():
  languages = {"source_language": "ko", "target_language": "en"}
  data = DataConfig(corpus=Corpus.TEXT, train="a", validation="b", test="c", **languages)
  assert _of_data(Config(data=data)) == {
    **{"corpus": "text", "languages": "ko to en"},
    **{"training text": "a", "validation text": "b", "test text": "c"},
  }
  for kind, said in ((Corpus.TEXT, "text"), (Corpus.PREPARED, "prepared"), (Corpus.TFDS, "tfds wmt14_translate/de-en")):
    named = DataConfig(corpus=kind, dataset="wmt14_translate/de-en", train="a")
    assert _of_data(Config(data=named))["corpus"] == said
  trained = [{"time": day, "data": "x"} for day in ("Monday", "Tuesday", "Friday")]
  averaged = {"time": "Wednesday", "averaged": {}}  # no start of training
  assert _starts([trained[0], averaged, *trained[1:]]) == "Monday, and 2 times again, last Friday"
  assert _starts(trained[:1]) == "Monday"
  run = SimpleNamespace(config=Config(), checkpoints=SimpleNamespace(steps=[1000, 2000], best=1000))
  assert _checkpoints(run) == "1,000, 2,000; the best by validation loss is 1,000"


def test_the_scores_of_the_last_validation_have_their_signatures(folder):
  for step, bleu in ((901, 3.5), (902, 21.256)):
    add_validation(folder, step, bleu=bleu, chrf=2 * bleu, bleu_signature=f"made at {step}", chrf_signature="another")
  page = report.render([runs.open(folder)]).decode()
  for title, value, signature in (("BLEU", "21.26", "made at 902"), ("chrF2", "42.51", "another")):
    assert f'{title}</th><td class="number"><b>{value}</b></td><td><code>{signature}</code></td>' in page


@pytest.mark.parametrize(
  ("keep", "save_every", "last"), [(7, 10, 5), (3, 10, 3), (7, 50, 2), (7, 60, 2), (1, 10, None), (7, 0, None)]
)
def test_the_command_to_average_takes_no_more_checkpoints_than_a_run_keeps(older, keep, save_every, last):
  run = runs.open(older)
  run.config.train = TrainConfig(steps=100, keep=keep, save_every=save_every)
  found = dict(report._commands(run, trains=True)).get("average checkpoints", "")
  assert f" --last {last} --output DIR" in found if last else found == ""
  assert "average checkpoints" not in dict(report._commands(run, trains=False))


@pytest.mark.parametrize(
  ("found", "expected"),
  [
    ({"pairs of texts": 40, "of them consecutive": 20, "documents": 3}, "rows of {} tokens"),
    ({"documents": 4, "tokens": 300}, "on average 75.0 tokens, rows of {} tokens"),
    ({"sentences": 40}, "rows of {} tokens"),
  ],
)
def test_lengths_of_what_has_no_sides_are_of_tokens_alone(folder, found, expected):
  packing = {"rows": 7, "tokens": 100, "sides": 1, "found": found, "left_out": {}}
  (folder / "provenance.json").write_text(json.dumps([{"data": "x", "packing": packing}]))
  run = runs.open(folder)
  facts, _ = facts_of(run, log.read(run.path))
  assert facts["lengths"] == expected.format(run.config.data.row_length)


def test_the_speed_at_the_top_is_in_the_unit_of_the_task(folder):
  (folder / "metrics.jsonl").write_text('{"step": 1, "split": "train", "tokens_per_second": 3.5}\n')
  found = log.read(runs.open(folder).path)
  for model, unit in ((ModelConfig(), "target tokens"), (BERTClassifierConfig(vocab_size=31), "sentences")):
    assert report._headline(found, Config(model=model)) == [(f"{unit} per second", "3.5", "step 1")]

"""The tables of pages in `docs/` are those of the committed results in `docs/results/`, digit by digit."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import jax
import pytest

from configs import multi30k, rnn
from transformer_jax.analysis import requirements
from transformer_jax.config import Decay, TrainConfig
from transformer_jax.training.scheduled_sampling import forcing_probability

DOCS = Path(__file__).parents[2] / "docs"
DISTANCES = (1, 2, 4, 8, 16, 32)
MEAN = "mean tanh'"


def results(path: str) -> Any:
  return json.loads((DOCS / "results" / path).read_text())


def prose(page: str) -> str:
  """The page without line breaks."""
  return " ".join((DOCS / page).read_text().split())


def tables(page: str, heading: str) -> list[list[list[str]]]:
  """The rows of cells of each table below a heading, up to the next heading."""
  _, _, text = f"\n{(DOCS / page).read_text()}".partition(f"\n{heading}\n")
  assert text, f"{page} has no heading {heading}"
  text = re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
  found = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
  return [[[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]] for table in found]


# docs/gradients.md


def norms(name: str) -> dict[tuple[str, str], list[float]]:
  return {(point["model"], point["states"]): point["norms"] for point in results(f"gradients/{name}.json")["points"]}


def at_distances(curve: list[float]) -> list[str]:
  cells = [f"{curve[d - 1]:.1e}" if d <= len(curve) else "" for d in DISTANCES]
  return [cell.removesuffix("e+00").replace("e+0", "e+").replace("e-0", "e-") for cell in cells]


def names_of(rows: list[list[str]]) -> list[str]:
  """The models of the rows, by their names in the results."""
  found: list[str] = []
  for name, *_ in rows:
    short = name.replace("RNN, U", "RNN, 1 U")
    found.append(f"{found[-1]}, bound of |U|" if name.startswith("its bound") else short)
  return [name if re.search("random|trained", name) else re.sub("^[A-Z]+[a-z]*", lower, name) for name in found]


def lower(match: re.Match[str]) -> str:
  return match[0].lower()


@pytest.mark.parametrize(
  ("heading", "name"),
  [
    ("## Random parameters", "random"),
    ("## Trained models", "trained"),
    ("## Trained models without attention, or without residual connections", "without"),
  ],
)
def test_norms_of_gradients(heading, name):
  [rows] = tables("gradients.md", heading)
  curves = norms(name)
  keys = [(model, row[1]) for model, row in zip(names_of(rows), rows, strict=True)]
  assert {*keys} == {key for key in curves if not key[0].endswith("bound of its steps")}
  assert [row[2:] for row in rows] == [at_distances(curves[key]) for key in keys]


def test_what_the_page_says_of_gradients():
  curves, page = norms("random"), prose("gradients.md")

  def factor(model):
    """The change per token, from distance 1 to 16."""
    return f"{(curves[model, 'target'][15] / curves[model, 'target'][0]) ** (1 / 15):.2f}"

  half, one, two, four = (factor(f"rnn, {scale} U") for scale in ("0.5", "1", "2", "4"))
  assert (
    f"shrinks to {half} with 0.5 U, and to {one} with U. It grows by {two} with 2 U, and by {four} with 4 U" in page
  )
  assert f"The LSTM keeps {factor('lstm')} per token" in page
  ratio = curves["lstm", "source"][31] / curves["rnn, 1 U", "source"][31]
  assert f"At distance 32 its gradient is {round(ratio, -3):,.0f} times that of the RNN" in page
  assert max(curves["without residuals", "target"]) < 1e-28 and "their gradient is below 1e-28" in page
  trained = norms("trained")
  curve, start = trained["Bahdanau, trained", "target"], trained["Bahdanau, random", "target"]
  sizes = f"it is {min(curve):.1f} to {max(curve):.1f} at every distance, where it began with {start[15]:.4f} at"
  assert f"{sizes} distance 16" in page


def test_what_the_page_says_of_models_that_lack_something():
  curves, page = norms("without"), prose("gradients.md")

  def at_32(model):
    return curves[model, "source"][31]

  gru, lstm = (at_32(f"{name}, trained") for name in ("GRU", "LSTM"))
  starts = f"{at_32('GRU, random'):.1e} and {at_32('LSTM, random'):.4f}".replace("e-0", "e-")
  assert f"At distance 32 it was {starts}, and is {gru:.2f} and {lstm:.2f}" in page
  rnn = curves["RNN, trained", "source"]
  assert f"shrinks to {(rnn[31] / rnn[0]) ** (1 / 31):.2f} per token" in page
  assert f"and is {rnn[31]:.0e} at distance 32" in page
  bound = curves["RNN, trained, bound of |U|", "target"]
  assert f"After training |U| is {(bound[16] / bound[0]) ** (1 / 16):.0f}" in page
  start, end = (curves[f"Without-residuals, {when}", "target"] for when in ("random", "trained"))
  assert f"own tokens, {start[3]:.0e} at the start, is 0 in" in page and not any(end)


def test_what_the_page_says_of_saturation():
  rows = {(row["model"], row["states of"]): row for row in results("gradients/saturation.json")["saturation"]}
  encoder, decoder = rows["RNN, trained", "encoder"], rows["RNN, trained", "decoder"]
  start, page = rows["RNN, random", "encoder"][MEAN], prose("gradients.md")
  sizes = f"below 0.01 for {encoder['saturated']:.0%} of the numbers in the encoder's states, and"
  mean = f"{encoder[MEAN]:.3f} in the mean; before training it is {start:.2f}"
  assert f"{sizes} {mean}" in page
  assert f"In the decoder it is below 0.01 for {decoder['saturated']:.0%}" in page


# docs/results/cells, docs/lineage.md


def test_the_sweep_of_cells():
  def cells(path: str) -> list[list[str]]:
    lines = [line for line in (DOCS / path).read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]

  whole = cells("results/cells/README.md")
  assert whole == cells("results/cells/cells.md")
  means = {(row[0], row[1]): row[-1] for row in whole}
  [rows] = tables("lineage.md", "### Cells and depth")
  names = {"simple recurrent units": "rnn", "GRU": "gru", "LSTM": "lstm"}
  assert [name for name, *_ in rows] == list(names)
  assert all(row == [means[names[name], layers] for layers in "124"] for name, *row in rows)


# docs/teacher_forcing.md


def test_losses_by_position():
  measured = results("exposure/trained.json")["rows"]
  found = tables("teacher_forcing.md", "## Exposure bias, measured")
  for rows, run in zip(found, ("runs/transformer-1", "runs/bahdanau-1"), strict=True):
    expected = []
    for row in (row for row in measured if row["run"] == run):
      numbers = [row[key] for key in ("loss, reference", "loss, own", "difference", "standard error")]
      cells = [f"{number:.2f}" if number else "0" for number in numbers]
      expected.append([row["positions"], f"{row['tokens']:,}", row["same so far"], *cells])
    assert rows == expected


def test_the_positions_of_the_picture():
  [one, other] = results("exposure/trained.json")["points"]
  assert one["tokens"] == other["tokens"]
  drawn = [position for position, tokens in enumerate(one["tokens"], 1) if tokens >= 100]
  assert drawn == list(range(1, len(drawn) + 1))
  assert f"100 tokens or more, which are those up to {len(drawn)}" in prose("teacher_forcing.md")
  assert f"has only {sum(one['tokens'][32:])} tokens, of {one['tokens'][32]} pairs" in prose("teacher_forcing.md")


# docs/normalisation.md


def test_changes_by_normalisation():
  [rows] = tables("normalisation.md", "# Batch normalisation and layer normalisation")
  measured = [list(row.values()) for row in results("normalisation/normalisation.json")["rows"]]
  measured[-1][0] = measured[-1][0].replace("(the other", "(the change of the other")
  assert rows == measured


# docs/lecture.md


def test_norms_of_embeddings():
  measured, page = results("embedding_norms.json")["rows"], prose("lecture.md")
  [rows] = tables("lecture.md", "## Embeddings and positions after training")
  columns = ("side", "embedding, mean over pieces", "over tokens", "position")
  names = {"random": "random", "step 3750": "after 3,750 updates"}
  assert rows == [[names[row["parameters"]], *(row[column] for column in columns)] for row in measured]
  ratios = [f"{float(row[columns[1]]) / float(row['position']):.1f}" for row in measured]
  assert ratios[0] == ratios[1]
  assert f"At the start an embedding is {ratios[0]} times as large as a position" in page
  assert f"it is {ratios[2]} times as large in the source and {ratios[3]} times in the target" in page
  pieces = [f"{row['pieces']:,}" for row in measured]
  assert f"each of the {pieces[0]} and {pieces[1]} pieces" in page and pieces[:2] == pieces[2:]


# docs/lineage.md


def runs_of(model: str) -> list[dict[str, Any]]:
  return [json.loads(file.read_text()) for file in sorted((DOCS / "results" / "lineage").glob(f"{model}-?.json"))]


def test_the_comparison(program):
  lineage = program("lineage")
  [rows] = tables("lineage.md", "## Comparison")
  ibm = results("lineage/ibm_model_1.json")
  bleu = f"{ibm['test']['scores']['bleu']['score']:.2f}"
  expected = [["IBM model 1", bleu, bleu, *(f"{group['bleu']:.1f}" for group in ibm["by_length"]), "", ""]]
  kept = DOCS / "results" / "lineage" / "rates.json"
  times = program("rates").measured(
    {model: [] for model in lineage.MODELS}, json.loads(kept.read_text()).get("keys", []), kept
  )
  times["reversed"] = times["plain"]
  for name, *_ in rows[1:]:
    row = lineage.row(model := name.strip("`").lower(), runs_of(model), times[model])
    groups = [cell for key, cell in row.items() if key.endswith(" words")]
    rates = [f"{row[key]:,.0f}" for key in ("updates", "target tokens/s")]
    expected.append([name, row["of each seed"], row["BLEU"], *groups, *rates])
  assert rows == expected
  assert len(rows) == 1 + len({file.name.rpartition("-")[0] for file in (DOCS / "results/lineage").glob("*-?.json")})


def test_the_lineage_until_bleu_stalls(program):
  pytest.importorskip("matplotlib")
  converged = program("lineage_converged")
  [rows] = tables("lineage.md", "### Until BLEU stalls")
  for name, *cells in rows:
    model = name.strip("`").lower()
    found = converged.row(results(f"lineage_converged/{model}-1.json"))
    folder = "lineage_converged" if model == "plain" else "lineage_converged/two_hours"  # it ended before
    before = results(f"{folder}/{model}-1.json")["test"]["scores"]["bleu"]["score"]
    counts = [f"{int(found[key]):,}" for key in ("updates", "best at")]
    hours = f"{found['hours to the best']:.2f}"
    assert cells == [*counts, hours, found["validation BLEU"], found["test BLEU"], f"{before:.2f}"]
  curve, page = program("timed_runs").curve, prose("lineage.md")
  at = {
    name: dict(zip(*curve(results(f"lineage_converged/{name}-1.json")["metrics"], "bleu"), strict=True))
    for name in ("bahdanau", "transformer")
  }
  theirs, ours = at["bahdanau"], at["transformer"]
  assert f"After 440 updates it has {theirs[440]:.1f} BLEU, and the Transformer has {ours[440]:.1f}." in page
  gained, ours_gained = (max(bleu.values()) - bleu[3080] for bleu in (theirs, ours))
  assert f"After 53 minutes Bahdanau's model has {theirs[3080]:.1f}, and gains {gained:.1f} in the next 83" in page
  assert f"the Transformer has {ours[3080]:.1f}, and gains {ours_gained:.1f} in the next 76" in page
  files = {name: results(f"lineage_converged/{name}-1.json") for name in ("plain", "bahdanau", "transformer")}
  plain, bahdanau, transformer = (f"{file['seconds_of_an_update']:.2f} s" for file in files.values())
  assert bahdanau == transformer and f"{bahdanau} each, for" in page and f"`plain` takes {plain} for" in page
  best = {name: int(converged.row(file)["best at"]) for name, file in files.items()}
  operations = [f"{best[name] * files[name]['operations'] / 1e15:.3f}" for name in ("bahdanau", "transformer")]
  assert operations == ["0.505", "0.505"] and "after 0.505 · 10^15 operations" in page
  minutes = {name: best[name] * file["seconds_of_an_update"] / 60 for name, file in files.items()}
  assert f"the Transformer {minutes['bahdanau'] - minutes['transformer']:.0f} minutes earlier" in page


def test_the_lineage_with_r_drop(program):
  pytest.importorskip("matplotlib")
  row = program("lineage_converged").row
  [rows] = tables("lineage.md", "### Until BLEU stalls, with R-Drop")
  assert [name for name, *_ in rows] == ["`plain`", "Bahdanau", "Transformer"]
  for name, *cells in rows:
    file = f"lineage_converged/{{}}{name.strip('`').lower()}-1.json".format
    made, before = (results(file(folder)) for folder in ("r_drop/", ""))
    assert {"train.r_drop=5", "train.optimizer=adamw", "model.dropout=0.1"} <= {*made["keys"]} - {*before["keys"]}
    found = row(made)
    gain = made["test"]["scores"]["bleu"]["score"] - before["test"]["scores"]["bleu"]["score"]
    counts = [f"{int(found[key]):,}" for key in ("updates", "best at")]
    scores = [f"{found['hours to the best']:.2f}", found["validation BLEU"], found["test BLEU"], f"{gain:+.2f}"]
    assert cells[:-1] == [*counts, *scores] and f"{made['seconds_of_an_update']:.2f} s" in prose("lineage.md")


def test_the_recipe_without_a_stop_by_bleu():
  page = prose("lineage.md")
  one, two, three = (
    f"{results(f'multi30k/plain-{seed}.json')['test']['scores']['bleu']['score']:.2f}" for seed in (1, 2, 3)
  )
  stopped = results("lineage_converged/transformer-1.json")["test"]["scores"]["bleu"]["score"]
  assert f"[{one}, {two} and {three}]" in page and f"more than the {stopped:.2f} here" in page


def test_where_training_without_dropout_was_best():
  metrics = results("ablations/D-drop0.0-1.json")["metrics"]
  perplexities = {line["step"]: line["perplexity"] for line in metrics if line["split"] == "validation"}
  best = min(perplexities, key=perplexities.get)
  assert f"least after {best:,} of {max(perplexities):,} updates" in prose("results/ablations/README.md")


def test_scheduled_sampling(program):
  [rows] = tables("teacher_forcing.md", "## Scheduled sampling, measured")
  sampled, plain = (results(f"lineage/{name}-1.json") for name in ("sampled", "plain"))
  steps = [line["step"] for line in sampled["metrics"] if line["split"] == "validation"]
  shown = [250, 750, 1250, 1750, 2250, steps[-1]]
  config = TrainConfig(scheduled_sampling=Decay.INVERSE_SIGMOID, sampling_k=250)
  expected = [["epsilon_i", *(f"{float(forcing_probability(config, step)):.2f}".lstrip("0") for step in shown)]]
  for title, result in (("with sampling", sampled), ("without", plain)):
    found = dict(zip(*program("timed_runs").curve(result["metrics"]), strict=True))
    expected.append([f"validation perplexity {title}", *(f"{found[step]:.1f}" for step in shown)])
  assert rows == expected
  rates = results("lineage/rates.json")["later"][0]["seconds_of_an_update"]
  assert f"takes {program('report').ratio(rates['sampled'], rates['plain']):.1f} times as long" in prose(
    "teacher_forcing.md"
  )


def test_word_for_word():
  ibm, page = results("lineage/ibm_model_1.json"), prose("lineage.md")
  words, scores = ibm["unknown_words"], ibm["test"]["scores"]
  assert f"is copied: {words['unknown']:,} of the {words['all']:,} words" in page
  assert f"(chrF2 is {scores['chrf']['score']:.1f})" in page
  assert f"in {ibm['iterations']} iterations" in page
  assert f"Learning took {ibm['training_seconds']:.0f} seconds" in page


def test_memory_of_a_million_lines():
  rows = results("reliability/soak_translate.json")["rows"]
  said = [f"{row['MB']:.0f} MB at {round(row['line'], -3):,}" for row in (rows[0], rows[4], rows[-1])]
  assert f"{said[0]}, {said[1]} and {said[2]}" in prose("input.md")
  said = [f"{row['MB']:.0f} MB after {round(row['line'], -3):,}" for row in (rows[0], rows[-1])]
  assert f"{said[0]} lines, {said[1]}" in prose("reliability.md")


def size(kind: str, **changes: int) -> int:
  model = dataclasses.replace(rnn.get_config(kind).model, **changes)
  return sum(leaf.size for leaf in jax.tree.leaves(requirements.parameter_shapes(model)))


def test_the_sizes_of_the_kinds():
  kinds, _ = tables("lineage.md", "# The models before the Transformer")
  for names, _, width, parameters in kinds:
    for kind in re.findall("`([a-z-]+)`", names):
      assert (width, parameters) == (f"{rnn.get_config(kind).model.hidden_size}", f"{size(kind):,}"), kind


@pytest.mark.long
def test_widths_with_as_many_parameters():
  """The widths of 2 layers are those of the configs, and the others those with the nearest number of parameters."""
  _, rows = tables("lineage.md", "# The models before the Transformer")
  most = requirements.parameters(multi30k.get_config("plain"))["total"]
  assert f"as many parameters as `configs/multi30k.py:plain`, {most:,}, to within 1%" in prose("lineage.md")
  for name, *widths in rows:
    kind = name.strip("`")
    for layers, width in enumerate(map(int, widths), 1):
      errors = [abs(size(kind, num_layers=layers, hidden_size=width + k) - most) for k in (-1, 0, 1)]
      assert errors[1] < 0.003 * most, (kind, layers)
      assert width == rnn.get_config(kind).model.hidden_size if layers == 2 else min(errors) == errors[1]

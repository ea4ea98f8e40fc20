"""The pictures of formulas: their numbers against NumPy, what is written in them, and their commands."""

import math

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from tests.inside.drawn import all_texts, require_readable
from transformer_jax.inside import (
  figures,
  masks_picture,
  positions_picture,
  schedule_picture,
  smoothing_picture,
  softmax_picture,
)
from transformer_jax.runtime.errors import InputError


def texts(figure):
  return " | ".join(text.get_text() for text in all_texts(figure))


def test_positions_are_those_of_the_formula():
  length, d_model = 13, 6
  expected = np.zeros((length, d_model))
  for pos in range(length):
    for i in range(d_model // 2):
      angle = pos / 10_000 ** (2 * i / d_model)
      expected[pos, 2 * i], expected[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
  encoded = positions_picture.encoding(length, d_model)
  np.testing.assert_allclose(encoded, expected, atol=1e-6)
  by_offset = [2 * math.sqrt(sum(math.sin(k / 2 / 100 ** (4 * i / 6)) ** 2 for i in range(3))) for k in range(length)]
  np.testing.assert_allclose(positions_picture.distances(encoded), by_offset, atol=1e-5)
  every = np.linalg.norm(expected[:, None] - expected[None], axis=2)
  for offset in range(length):  # the distance depends on the offset alone
    np.testing.assert_allclose(np.diag(every, offset), by_offset[offset], atol=1e-12)


@pytest.mark.parametrize(("length", "d_model"), [(2, 2), pytest.param(100, 512, marks=pytest.mark.long)])
def test_the_picture_of_positions(length, d_model):
  chosen = positions_picture.dimensions(length, d_model)
  assert chosen[0] == 0 and chosen == sorted(set(chosen)) and all(i % 2 == 0 and i < d_model for i in chosen)
  figure = positions_picture.draw(length, d_model)
  require_readable(figure)
  shown = texts(figure)
  assert f"dimension, d_model = {d_model}" in shown and f"√d_model = {math.sqrt(d_model):.1f}" in shown
  encoded = positions_picture.encoding(length, d_model)
  (sines,), (cosines,) = (axis.images for axis in figure.axes[:2])
  np.testing.assert_array_equal(sines.get_array(), encoded[:, 0::2])
  np.testing.assert_array_equal(cosines.get_array(), encoded[:, 1::2])
  assert sines.axes.yaxis_inverted()  # position 0 is above
  for first, axis in enumerate(figure.axes[:2]):  # every second dimension is a column
    labels = [int(tick.get_text()) for tick in axis.get_xticklabels()]
    assert labels == [2 * place + first for place in axis.get_xticks()]
  *waves, offsets = (axis.lines[0].get_xydata() for axis in figure.axes if axis.lines)
  np.testing.assert_array_equal(offsets[:, 1], positions_picture.distances(encoded))
  for dimension, points in zip(chosen, waves, strict=True):
    at_positions = points[np.isin(points[:, 0], np.arange(length)), 1]
    np.testing.assert_allclose(at_positions, encoded[:, dimension], atol=1e-6)


def test_rates_are_those_of_the_formula():
  for warmup, found in zip((7, 40, 5), schedule_picture.rates(11, [7, 40, 5], 30), strict=True):
    assert found.warmup == warmup and found.steps[0] == 1 and found.steps[-1] == 30
    expected = [1 / math.sqrt(11) * min(step**-0.5, step * warmup**-1.5) for step in found.steps.tolist()]
    np.testing.assert_allclose(found.rates, expected, rtol=1e-6)
    assert math.isclose(found.peak, 1 / math.sqrt(11 * warmup))
  for warmup, found in zip((7, 40, 5), schedule_picture.rates(11, [7, 40, 5], 30, 2.5), strict=True):
    expected = [2.5 * min(math.sqrt(warmup / step), step / warmup) for step in found.steps.tolist()]
    np.testing.assert_allclose(found.rates, expected, rtol=1e-6)
    assert found.peak == 2.5
  assert 4000 in schedule_picture.rates(512, [4000], 20_000)[0].steps


@pytest.mark.parametrize(("d_model", "warmups", "last"), [(512, [4000, 2000, 8000], 20_000), (2, [1], 2)])
def test_the_picture_of_the_learning_rate(d_model, warmups, last):
  figure = schedule_picture.draw(d_model, warmups, last)
  require_readable(figure)
  for warmup in warmups:
    own = " (the config)" if warmup == warmups[0] else ""
    assert f"warmup {warmup:,}{own}: peak {(d_model * warmup) ** -0.5:.3g}" in texts(figure)
  assert len({(line.get_linestyle(), line.get_marker()) for line in figure.axes[0].lines}) == len(warmups)
  for line, expected in zip(figure.axes[0].lines, schedule_picture.rates(d_model, sorted(warmups), last), strict=True):
    np.testing.assert_array_equal(line.get_xydata(), np.stack([expected.steps, expected.rates], axis=1))
    assert f"warmup {expected.warmup:,}" in line.get_label()
    assert line.get_xdata()[line.get_markevery()].tolist() == [step for step in [expected.warmup] if step <= last]
    assert (line.get_linewidth() > 2) == (expected.warmup == warmups[0])


@pytest.mark.parametrize(
  ("warmups", "last"), [([100, 1000], 50), ([400, 1000], 500), ([100, 1000], 500), ([4000], 20_000)]
)
def test_no_line_goes_through_the_legend(warmups, last):
  figure = schedule_picture.draw(512, warmups, last)
  figure.canvas.draw()
  [axis] = figure.axes
  box = axis.get_legend().get_window_extent()
  for line in axis.lines:
    assert not any(box.contains(*point) for point in axis.transData.transform(line.get_xydata()))


def test_masks_are_those_of_the_rules():
  """Two pairs of 4 and 3, and of 2 and 4 tokens, in a row of 8: each cell by the rule in words."""
  found = {mask.name: mask for mask in masks_picture.masks([(4, 3), (2, 4)], 8, 2)}
  source, target = [1, 1, 1, 1, 2, 2, 0, 0], [1, 1, 1, 2, 2, 2, 2, 0]
  rules = {
    "padding": lambda i, j: target[i] > 0 and target[j] > 0,
    "segments": lambda i, j: target[i] == target[j] > 0,
    "causal": lambda i, j: j <= i,
    "window 2": lambda i, j: abs(i - j) <= 2,
    "encoder": lambda i, j: source[i] == source[j] > 0,
    "decoder": lambda i, j: target[i] == target[j] > 0 and j <= i,
    "with window": lambda i, j: target[i] == target[j] > 0 and i - 2 <= j <= i,
    "cross": lambda i, j: target[i] == source[j] > 0,
  }
  assert [*found] == [*rules]
  for name, rule in rules.items():
    expected = [[rule(i, j) for j in range(8)] for i in range(8)]
    assert found[name].allowed.tolist() == expected, name
  assert found["cross"].query == ["a1", "a2", "a3", "b1", "b2", "b3", "b4", "·"]
  assert found["cross"].key == ["a1", "a2", "a3", "a4", "b1", "b2", "·", "·"]
  with pytest.raises(InputError, match="the pairs have 9 tokens on one side, but the row has 8"):
    masks_picture.masks([(4, 3), (5, 4)], 8, 1)


@pytest.mark.parametrize(
  ("pairs", "row"), [([(1, 2)], 3), pytest.param([(5, 4), (3, 3), (1, 5)], 12, marks=pytest.mark.long)]
)
def test_the_picture_of_masks(pairs, row):
  masks = masks_picture.masks(pairs, row, 1)
  figure = masks_picture.draw(masks)
  require_readable(figure)
  for axis, mask in zip(figure.axes, masks, strict=True):
    [cells] = axis.collections
    assert cells.get_array().tolist() == mask.allowed.tolist() and axis.yaxis_inverted()
    assert cells.cmap(1.0)[0] < cells.cmap(0.0)[0]  # the allowed ones are darker
    assert [tick.get_text() for tick in axis.get_yticklabels()] == mask.query
    assert [tick.get_text() for tick in axis.get_xticklabels()] == mask.key
  assert len(figure.axes) == 8 and "window 1" in texts(figure)


def test_weights_are_softmaxes():
  """A softmax of the unscaled products is a softmax of the scaled ones to the power of sqrt(d_k)."""
  found = softmax_picture.weights(13, 19)
  assert found.scaled.shape == found.unscaled.shape == (19, softmax_picture.KEYS)
  np.testing.assert_allclose(found.scaled.sum(axis=1), 1, rtol=1e-5)
  power = found.scaled.astype(np.float64) ** math.sqrt(13)
  np.testing.assert_allclose(found.unscaled, power / power.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-6)
  generator = np.random.default_rng(0)
  query, key = generator.normal(size=(19, 1, 1, 13)), generator.normal(size=(19, softmax_picture.KEYS, 1, 13))
  scores = np.exp(np.einsum("nqhd,nkhd->nk", query, key) / math.sqrt(13))
  np.testing.assert_allclose(found.scaled, scores / scores.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_the_picture_of_the_softmax():
  figure = softmax_picture.draw([2, 37], queries=101)
  require_readable(figure)
  assert "with the scale" in texts(figure) and "$d_k$ = 37" in texts(figure)
  every = [softmax_picture.weights(d_k, 101) for d_k in (2, 37)]
  *examples, boxes = figure.axes
  for each, (scaled, unscaled) in zip(every, (examples[:2], examples[2:]), strict=True):
    query = np.argsort(each.unscaled.max(axis=1), kind="stable")[50]
    assert [bar.get_height() for bar in scaled.patches] == each.scaled[query].tolist()
    assert [bar.get_height() for bar in unscaled.patches] == each.unscaled[query].tolist()
  medians = {line.get_xdata().mean(): line.get_ydata()[0] for line in boxes.lines if line.get_linewidth() == 2}
  expected = {}
  for place, each in enumerate(every):
    expected |= {place - 0.2: np.median(each.scaled.max(axis=1)), place + 0.2: np.median(each.unscaled.max(axis=1))}
  assert medians == pytest.approx(expected)
  assert [text.get_text() for text in boxes.get_legend().get_texts()] == ["with the scale", "without"]
  titles = [axis.get_title("left") for axis in examples[:2]]
  assert titles == ["a typical query, with the scale", "a typical query, without"]


def test_targets_and_losses_are_those_of_the_formula():
  q = [0.9 + 0.1 / 7 if v == 0 else 0.1 / 7 for v in range(7)]
  np.testing.assert_allclose(smoothing_picture.targets(7, 0.1), q, atol=1e-6)
  assert smoothing_picture.targets(5, 0.0).tolist() == [1, 0, 0, 0, 0]
  p = np.array([0.1, 0.5, 0.9])
  expected = [-(0.8 + 0.2 / 5) * math.log(x) - 4 * 0.2 / 5 * math.log((1 - x) / 4) for x in p]
  np.testing.assert_allclose(smoothing_picture.losses(p, 5, 0.2), expected, rtol=1e-5)


@pytest.mark.parametrize(
  ("vocab", "smoothings"), [(6, [0, 0.1, 0.3]), pytest.param(12, [0, 0.01, 0.1, 0.5], marks=pytest.mark.long)]
)
def test_the_picture_of_smoothing(vocab, smoothings):
  figure = smoothing_picture.draw(vocab, smoothings)
  require_readable(figure)
  for smoothing in smoothings:
    assert f"ε = {smoothing:g}: lowest at p = {1 - smoothing + smoothing / vocab:.3g}" in texts(figure)
  for number, (smoothing, line) in enumerate(zip(smoothings, figure.axes[1].lines, strict=True)):
    p, loss = line.get_xydata().T
    np.testing.assert_allclose(loss, smoothing_picture.losses(p, vocab, smoothing))
    [point] = line.get_markevery()
    assert p[point] == pytest.approx(1 - smoothing + smoothing / vocab, abs=2e-3)
    heights = [bar.get_height() for bar in figure.axes[0].patches[vocab * number : vocab * (number + 1)]]
    assert heights == smoothing_picture.targets(vocab, smoothing).tolist()
  bars = figure.axes[0].patches[: vocab * len(smoothings)]
  assert len({(bar.get_hatch(), bar.get_facecolor()) for bar in bars}) == len(smoothings)  # they differ in grey, too


@pytest.mark.parametrize(
  ("argv", "inside"),
  [
    (["positions", "--config=base", "--length", 7], "d_model = 512"),
    pytest.param(["positions", "--d-model", 6, "--length", 7], "d_model = 6", marks=pytest.mark.long),
    (["schedule", "--config=base", "--warmup", 1000], "warmup 4,000 (the config): peak 0.000699"),
    (["schedule", "--config=base", "--config.train.peak_learning_rate=0.5"], "peak 0.5"),
    pytest.param(["masks", "--pairs", "2-3", "--row-length", 4], "a3", marks=pytest.mark.long),
    (["softmax", "--d-k", 5], "$d_k$ = 5"),
    (["smoothing", "--label-smoothing", 0.2, "--vocab-size", 5], "ε = 0.2: 0.84 and 0.04"),
  ],
)
def test_the_commands(command, tmp_path, argv, inside):
  output = tmp_path / "picture.svg"
  status, out, _ = command(*argv, "--output", output)
  assert (status, out) == (0, f"{output}\n")
  assert inside in output.read_text()  # matplotlib writes each text as a comment before its shapes


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["positions", "--length", 1], "--length is 1, but must be from 2"),
    (["positions", "--d-model", 5], "--d-model is 5, but must be even"),
    (["positions", "--d-model", 6, "--config=base"], "--d-model stands for a whole config"),
    (["masks", "--pairs", "13-3"], "but the row has 8: give a longer row, or fewer tokens"),
    (["positions", "--config=rnn"], "or give --d-model alone"),
    (["positions", "--d-model", 6, "--workdir", "W"], "--d-model stands for a whole config"),
    (["positions", "--d-model", 6, "--config.model.num_layers=2"], "--d-model stands for a whole config"),
    (["positions", "--config=gpt"], "config.model.family is gpt, which has no sinusoids"),
    (["positions", "--config=base", "--config.model.learned_positions"], "config.model.learned_positions is True"),
    (["schedule", "--warmup", 0], "--warmup is 0, but must be from 1 to 2,147,483,647"),
    (["schedule", "--steps", 1], "--steps is 1, but must be from 2 to 2,147,483,647"),
    (["schedule", "--steps", 2**31], "--steps is 2147483648, but must be from 2 to 2,147,483,647"),
    (["masks", "--pairs", "4:3"], "--pairs has '4:3', but a pair is written as 4-3"),
    (["masks", "--pairs", "8-3", "1-1"], "the pairs have 9 tokens on one side"),
    (["masks", "--row-length", 13], "--row-length is 13, but must be from 2 to 12"),
    (["masks", "--window", 10**22], f"--window is {10**22}, but must be from 1 to 12"),
    (["softmax", "--d-k", 0], "--d-k is 0, but must be from 1"),
    (["smoothing", "--label-smoothing", 1], "--label-smoothing is 1.0, but must be at least 0 and below 1"),
    (["smoothing", "--vocab-size", 1], "--vocab-size is 1, but must be from 2"),
    (["schedule", "--config=base", "--config.train.schedule=cosine"], "config.train.schedule is cosine, but"),
    (["schedule", "--config=base", "--warmup", *range(1, 9)], "--warmup is 8 numbers, but must be at most 7 numbers"),
    (["softmax", "--seed", -1], "--seed is -1, but must be 0 or more"),
    (["softmax", "--d-k", *range(1, 8)], "--d-k is 7 numbers, but must be at most 6 numbers"),
    (["smoothing", "--label-smoothing", *[0.1] * 5], "--label-smoothing is 5 numbers, but must be at most 4 numbers"),
  ],
)
def test_mistakes_are_one_sentence(command, argv, message):
  status, out, err = command(*argv, "--output", "x.svg")
  assert (status, out) == (2, "") and message in err[-1]


@pytest.mark.parametrize(
  ("argv", "module", "given"),
  [
    (["positions", "--d-model", 6, "--length", 7], positions_picture, ((7, 6), {})),
    (
      ["schedule", "--config=base", "--warmup", 1000, 300, "--steps", 900],
      schedule_picture,
      ((512, [4000, 1000, 300], 900, None), {}),
    ),
    (["schedule", "--config=base"], schedule_picture, ((512, [4000, 2000, 8000], 20_000, None), {})),
    (["softmax", "--d-k", 5, 7, "--seed", 3], softmax_picture, (([5, 7],), {"seed": 3})),
    (["smoothing", "--label-smoothing", 0.2, "--vocab-size", 5], smoothing_picture, ((5, [0.2]), {})),
  ],
)
def test_each_flag_reaches_the_picture(command, tmp_path, monkeypatch, argv, module, given):
  asked = []
  monkeypatch.setattr(module, "draw", lambda *args, **options: asked.append((args, options)) or Figure())
  assert command(*argv, "--output", tmp_path / "x.svg")[0] == 0
  assert asked == [given]


def test_each_flag_reaches_the_masks(command, tmp_path, monkeypatch):
  asked = []
  monkeypatch.setattr(masks_picture, "masks", lambda *args: asked.append(args))
  monkeypatch.setattr(masks_picture, "draw", lambda masks: Figure())
  argv = "masks", "--pairs", "2-3", "--row-length", 4, "--window", 2
  assert command(*argv, "--output", tmp_path / "x.svg")[0] == 0
  assert asked == [([(2, 3)], 4, 2)]


@pytest.mark.parametrize("lacking", [False, True])
def test_characters_that_the_fonts_lack_are_told(command, tmp_path, monkeypatch, lacking):
  monkeypatch.setattr(smoothing_picture, "draw", lambda *_: Figure())
  monkeypatch.setattr(figures, "files", lambda figure, endings: ({"svg": b"<svg/>"}, lacking))
  said = "the fonts of this machine lack some characters, which are boxes in the pictures: install Noto Sans CJK"
  assert command("smoothing", "--output", tmp_path / "x.svg")[::2] == (0, [said] * lacking)

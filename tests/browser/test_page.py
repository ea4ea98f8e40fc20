"""The pages of `serve`, `attention` and `report` in a real browser: Chromium without a window, if it is installed."""

import itertools
import json
import shutil

import numpy as np
import pytest

from tests.serve.fake import Gate, serving
from transformer_jax import runs
from transformer_jax.config import Config, serialization
from transformer_jax.decoding.attention import Attention
from transformer_jax.decoding.translation import Translation
from transformer_jax.inside import report
from transformer_jax.inside.attention import to_page

pytest.importorskip("selenium")
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

BROWSER, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = [
  pytest.mark.long,
  pytest.mark.skipif(not (BROWSER and DRIVER), reason="Chromium and its driver are not installed"),
]


@pytest.fixture(scope="module")
def browser():
  options = ChromeOptions()
  options.binary_location = BROWSER or ""
  options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
  for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,1000"):
    options.add_argument(flag)
  browser = Chrome(options, Service(DRIVER))
  yield browser
  browser.quit()


@pytest.fixture(scope="module")
def client():
  with serving() as client:
    yield client


@pytest.fixture
def page(browser, client):
  browser.get(client.url)
  wait(browser, lambda: find(browser, "#model").text)
  yield browser
  # A file that the policy forbids, or an error of a script, would be here.
  assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def wait(browser, condition):
  """Waits until the condition is true; the page may replace what is looked at."""
  return WebDriverWait(browser, 60, 0.05, [StaleElementReferenceException]).until(lambda _: condition())


def find(browser, selector):
  return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser, selector):
  return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def weights_said(browser):
  """What the page says about the weights, without the isolates around its tokens, which are not seen."""
  return find(browser, "#weights").text.replace("\u2068", "").replace("\u2069", "")


def seen_order(browser, selector, *parts):
  """The parts of an element's text, from left to right as they are drawn."""
  script = """
    const node = document.querySelector(arguments[0]).firstChild, range = document.createRange();
    return arguments[1].map((part) => {
      const first = node.data.indexOf(part);
      range.setStart(node, first);
      range.setEnd(node, first + part.length);
      return range.getBoundingClientRect().left;
    });"""
  places = browser.execute_script(script, selector, parts)
  return [part for _, part in sorted(zip(places, parts, strict=True))]


def type_sentence(page, text):
  find(page, "#source").send_keys(text)
  wait(page, lambda: find(page, "#translation").text == text.upper())


def test_a_sentence_is_translated(page):
  assert (find(page, "#model").text, page.title) == ("fake, English to German", "English to German")
  type_sentence(page, "a small house")
  assert texts(page, "tbody .text") == ["A SMALL HOUSE" + "!" * rank for rank in range(4)]
  assert texts(page, "tbody tr:nth-child(2) .number") == ["-1.000", "-2.000", "3"]


def test_a_word_that_is_pointed_at_shades_those_that_it_looks_at(page):
  type_sentence(page, "one two three")
  wait(page, lambda: texts(page, "#queries button") == ["ONE", "TWO", "THREE"])
  ActionChains(page).move_to_element(find(page, "#queries button:nth-child(2)")).perform()
  wait(page, lambda: weights_said(page) == "TWO looks at three 1.00, one 0.00, two 0.00")
  shaded = [button.get_attribute("title") for button in page.find_elements(By.CSS_SELECTOR, "#keys button")]
  assert shaded == ["0.000", "0.000", "1.000"]
  Select(find(page, "#layer")).select_by_visible_text("Layer 1")
  Select(find(page, "#head")).select_by_visible_text("Head 1")
  assert weights_said(page).startswith("TWO looks at two 1.00")
  Select(find(page, "#kind")).select_by_visible_text("Source over source")
  wait(page, lambda: texts(page, "#queries button") == ["one", "two", "three"])


def test_tokens_from_right_to_left_stay_beside_their_weights(page):
  type_sentence(page, "\u05d0\u05d1 \u05d2\u05d3")
  wait(page, lambda: len(texts(page, "#queries button")) == 2)
  ActionChains(page).move_to_element(find(page, "#queries button")).perform()
  wait(page, lambda: weights_said(page) == "\u05d0\u05d1 looks at \u05d2\u05d3 1.00, \u05d0\u05d1 0.00")
  parts = ["looks at", "\u05d2\u05d3", "1.00", "0.00"]
  assert seen_order(page, "#weights", *parts) == parts
  first, second = page.find_elements(By.CSS_SELECTOR, "#queries button")
  assert first.location["x"] > second.location["x"]  # as they are read


def test_the_page_of_attention_keeps_tokens_from_right_to_left_beside_their_weights(browser, tmp_path):
  keys, file = ("\u05d0\u05d1\u05d2", "\u05d3\u05d4\u05d5", "x"), tmp_path / "attention.html"
  weights = np.array([0.61, 0.3, 0.09], np.float32).reshape(1, 1, 1, 3)
  file.write_bytes(to_page(Attention(keys, ("<s>",), ("dog",), {"cross": weights}), "a run", ["a text"]))
  browser.get(f"file://{file}")
  find(browser, "#queries button").click()
  parts = [keys[0], "61%", keys[1], "30%", "9%"]
  wait(browser, lambda: all(part in find(browser, "#said").text for part in parts))
  assert seen_order(browser, "#said", *parts) == parts
  [title] = {
    cell.get_attribute("title")
    for cell in browser.find_elements(By.CSS_SELECTOR, "#matrix td:nth-child(2)")
    if cell.get_attribute("title")
  }
  assert title == "\u2068dog\u2069 \u2192 \u2068\u05d0\u05d1\u05d2\u2069: 61%"


def test_the_keyboard_reaches_everything(page):
  """Tab alone leads from the text to everything; the arrow keys move inside a group."""
  type_sentence(page, "one two three")
  wait(page, lambda: len(texts(page, "#keys button")) == 3)
  reached = []
  for _ in range(10):
    page.switch_to.active_element.send_keys(Keys.TAB)
    active = page.switch_to.active_element
    reached.append(active.get_attribute("id") or active.text)
  assert reached == [
    "beam",
    "penalty",
    "Translate",
    "table",
    "hypothesis-1-1",
    "kind",
    "layer",
    "head",
    "ONE",
    "one",
  ]
  find(page, "#queries button").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
  assert page.switch_to.active_element.text == "THREE"
  assert weights_said(page).startswith("THREE looks at three")


def test_another_hypothesis_shows_its_attention(page):
  type_sentence(page, "one")
  wait(page, lambda: texts(page, "#queries button") == ["ONE"])
  find(page, "tbody tr:nth-child(3) label").click()
  wait(page, lambda: texts(page, "#queries button") == ["ONE!!"])


def test_options_are_used(page):
  type_sentence(page, "one")
  Select(find(page, "#beam")).select_by_visible_text("2")
  wait(page, lambda: texts(page, "tbody .text") == ["ONE", "ONE!"])


def test_a_text_of_html_is_shown_as_it_is(page):
  text = "<img src=x onerror=alert(1)><b>bold</b>"
  type_sentence(page, text)
  wait(page, lambda: len(texts(page, "#queries button")) == 3)
  assert texts(page, "tbody .text")[0] == text.upper()
  assert not page.find_elements(By.CSS_SELECTOR, "main img, main b")


def test_an_error_is_shown(page):
  assert not find(page, "#source").get_attribute("maxlength")  # else a browser cuts what is pasted, and says nothing
  page.execute_script("document.getElementById('source').value = 'x'.repeat(40000)")
  find(page, "#form button").click()
  wait(page, lambda: "40,000 characters" in find(page, "#status").text)
  page.get_log("browser")  # the browser notes the status 413


def test_an_error_that_is_no_json_is_shown_by_its_status(page):
  page.execute_script("window.fetch = async () => new Response('Service Unavailable', { status: 503 })")
  find(page, "#source").send_keys("one")
  wait(page, lambda: "the status 503: try again later" in find(page, "#status").text)


FAILING = """
const { fetch } = window, refused = () => new Response('{"error": "too long"}', { status: 400 });
window.fetch = async (path, ...rest) => (path === "attention" ? refused() : fetch(path, ...rest));
"""


def test_after_an_error_no_earlier_attention_is_shown(page):
  type_sentence(page, "one two")
  wait(page, lambda: texts(page, "#queries button") == ["ONE", "TWO"])
  page.execute_script(FAILING)
  find(page, "#source").clear()
  type_sentence(page, "three")
  wait(page, lambda: find(page, "#weights").text == "too long")
  Select(find(page, "#layer")).select_by_visible_text("Layer 1")
  assert find(page, "#weights").text == "too long" and not find(page, "#matrix").is_displayed()


WATCH = """
const { fetch } = window, translation = document.getElementById("translation");
window.asked = 0;
window.shown = [];
window.fetch = (...args) => (window.asked++, fetch(...args));
new MutationObserver(() => window.shown.push(translation.textContent)).observe(translation, { childList: true });
"""


def test_a_text_that_was_typed_over_is_not_shown(browser):
  """Its translation comes when the page has already asked for that of the next text."""
  gate = Gate()
  with serving(gate) as client:
    browser.get(client.url)
    wait(browser, lambda: find(browser, "#model").text)
    browser.execute_script(WATCH)
    find(browser, "#source").send_keys("first", Keys.CONTROL, Keys.ENTER)
    gate.begun.acquire()
    before = browser.execute_script("return asked")
    find(browser, "#source").send_keys(Keys.NULL, " second")
    wait(browser, lambda: browser.execute_script("return asked") > before)
    gate.open.set()
    wait(browser, lambda: find(browser, "#translation").text == "FIRST SECOND")
    assert browser.execute_script("return shown") == ["FIRST SECOND"]


def test_a_source_word_that_was_pointed_at_may_be_deleted(browser):
  """Though the translation has as many tokens as before, so that nothing else on the page changes its size."""

  def translate(lines, options, warn):
    return [[Translation(f"ALWAYS {len(line.split())}", 0.0, 0.0, 3)] for line in lines]

  with serving(translate) as client:
    browser.get(client.url)
    wait(browser, lambda: find(browser, "#model").text)
    find(browser, "#source").send_keys("one two three")
    wait(browser, lambda: texts(browser, "#keys button") == ["one", "two", "three"])
    ActionChains(browser).move_to_element(find(browser, "#keys button:nth-child(3)")).perform()
    wait(browser, lambda: weights_said(browser).startswith("three is looked at by"))
    find(browser, "#source").send_keys(*[Keys.BACKSPACE] * len(" three"))
    wait(browser, lambda: texts(browser, "#queries button") == ["ALWAYS", "2"])
    wait(browser, lambda: weights_said(browser).startswith("ALWAYS looks at"))


def test_a_report_says_the_values_of_the_step_that_is_chosen(browser, tmp_path):
  values = [(100, "train", 1000.0), (200, "train", 100.0), (300, "train", 10.0), (300, "validation", 20.0)]
  (tmp_path / "config.json").write_text(serialization.to_json(Config()))
  lines = (json.dumps({"step": step, "split": split, "perplexity": value}) + "\n" for step, split, value in values)
  (tmp_path / "metrics.jsonl").write_text("".join(lines))
  (tmp_path / "page.html").write_bytes(report.render([runs.open(tmp_path)]))
  browser.get(f"file://{tmp_path}/page.html")
  browser.execute_script("document.querySelector('.plane').focus()")
  heights = []
  for key, step, said in ((Keys.HOME, 100, "1,000"), (Keys.ARROW_RIGHT, 200, "100"), (Keys.END, 300, "10")):
    browser.switch_to.active_element.send_keys(key)
    assert find(browser, "output").text == f"step {step}"
    assert texts(browser, ".legend b") == [said, "20" if step == 300 else "20 at 300"]
    heights.append(float(find(browser, ".dot.train").get_attribute("cy")))
  assert heights[1] == pytest.approx((heights[0] + heights[2]) / 2)  # the axis is logarithmic
  ActionChains(browser).move_to_element(find(browser, ".plane")).perform()  # its middle is step 195 of the axis
  assert find(browser, "output").text == "step 200"


def test_each_line_has_its_hypotheses_and_their_attention(page):
  type_sentence(page, "one two\nthree")
  assert texts(page, "tbody th") == ["one two", "three"]
  find(page, "tbody:nth-of-type(2) tr:nth-child(3) label").click()
  wait(page, lambda: texts(page, "#queries button") == ["THREE!"])
  assert texts(page, "#keys button") == ["three"]


def test_a_warning_is_shown(page):
  type_sentence(page, "x" * 101)
  wait(page, lambda: find(page, "#status").text == "line 1 is too long")
  find(page, "#source").send_keys("\n", "y" * 101)
  wait(page, lambda: find(page, "#status").text == "line 1 is too long; line 2 is too long")


def test_a_lost_connection_is_told(page):
  page.execute_script("window.fetch = async () => { throw new TypeError('Failed to fetch') }")
  find(page, "#source").send_keys("one")
  wait(page, lambda: "The server cannot be reached: see whether it runs" in find(page, "#status").text)


def test_an_attention_that_is_no_longer_wanted_is_not_waited_for(page):
  type_sentence(page, "one")
  wait(page, lambda: texts(page, "#queries button") == ["ONE"])
  page.execute_script("""
    window.left = 0;
    window.fetch = (path, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", () => {
      window.left++;
      fail(signal.reason);
    }));""")
  for row in (2, 3):
    find(page, f"tbody tr:nth-child({row}) label").click()
  wait(page, lambda: page.execute_script("return left") == 1)


def test_the_length_penalty_is_used(browser):
  def translate(lines, options, warn):
    return [[Translation(f"{options.length_penalty:g}", 0.0, 0.0, 3)] for _ in lines]

  with serving(translate) as client:
    browser.get(client.url)
    wait(browser, lambda: find(browser, "#model").text)
    find(browser, "#source").send_keys("one")
    wait(browser, lambda: find(browser, "#translation").text == "0.6")
    Select(find(browser, "#penalty")).select_by_visible_text("1.5")
    wait(browser, lambda: find(browser, "#translation").text == "1.5")


def test_each_token_of_a_row_from_right_to_left_is_apart_from_the_one_before(page):
  type_sentence(page, "\u05d0\u05d1 7 \u05d2\u05d3")
  wait(page, lambda: len(texts(page, "#queries button")) == 3)
  boxes = [button.rect for button in page.find_elements(By.CSS_SELECTOR, "#queries button")]
  gaps = [before["x"] - after["x"] - after["width"] for before, after in itertools.pairwise(boxes)]
  assert gaps == pytest.approx([8, 8], abs=1)

"""The Korean pages have the code, links, formulas and numbers of the English ones, section by section."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "annotated" / "paper.md"]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
UNITS = {"million": 1_000_000, "만": 10_000}


def korean(page: Path) -> Path:
  return page.with_suffix(".ko.md")


def sections(page: Path) -> list[str]:
  """The text between two headings, without blocks of code; each part begins with the heading."""
  return re.split(r"^(?=#+ )", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)


def links(text: str) -> Counter[str]:
  """The targets of links; those of a page's own language and its anchors are as one."""
  found = Counter(re.sub(r"\.ko\.md$", ".md", target) for target in re.findall(r"\]\(([^)]*)\)", text))
  return Counter({"#" if target.startswith("#") else target: count for target, count in found.items()})


def numbers(text: str) -> Counter[str]:
  """The numbers of the prose; 1.07 million and 107만 are the same."""
  prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", FORMULA.sub("", text)).replace(",", "")
  found = re.findall(r"(\d(?:[\d.]*\d)?)(?: ?(million|만))?", prose)
  return Counter(f"{float(number) * UNITS[unit]:.0f}" if unit else number for number, unit in found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_is_the_same(page):
  blocks = FENCE.findall(page.read_text(encoding="utf-8"))
  assert blocks and blocks == FENCE.findall(korean(page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_section_says_the_same(page):
  english, translated = sections(page), sections(korean(page))
  assert [part.split(" ")[0] for part in english] == [part.split(" ")[0] for part in translated]
  for one, other in zip(english, translated, strict=True):
    heading = one.partition("\n")[0]
    assert links(one) == links(other), heading
    assert numbers(one) == numbers(other), heading
    assert Counter(FORMULA.findall(one)) == Counter(FORMULA.findall(other)), heading
    assert Counter(re.findall(r"`[^`]+`", one)) == Counter(re.findall(r"`[^`]+`", other)), heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_leads_to_the_other(page):
  assert f"]({korean(page).name})" in page.read_text(encoding="utf-8")
  assert f"]({page.name})" in korean(page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
  ("text", "found"),
  [
    ("1.07 million of 3.5.", ["1070000", "3.5"]),
    ("107만 개와 1,000개.", ["1070000", "1000"]),
    ("`5` [6](7.md) $8$ §9.1.2", ["6", "9.1.2"]),
  ],
)
def test_numbers_are_found(text, found):
  assert numbers(text) == Counter(found)

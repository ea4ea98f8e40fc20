"""Styles of lines in a picture, which differ in grey too: by their markers and dashes."""

import itertools

# Nine and more lines: the first seven are solid. The markers of neighbours stand at different places.
STYLES = [
  {"color": f"C{number % 10}", "linestyle": line, "marker": marker, "markevery": (number % 4, 4), "markersize": 4}
  for number, (line, marker) in enumerate(itertools.product(("-", "-."), ("o", "s", "^", "v", "D", "x", "*")))
]

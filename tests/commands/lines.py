"""What the tests of commands translate."""

LINES = ["abc de", "", "f ghij ab", "\N{SNOWMAN} c", "   ", "de de"]


def text(lines):
  return "".join(f"{line}\n" for line in lines)

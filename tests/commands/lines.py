"""What the tests of commands translate."""

LINES = ["abc de", "", "f ghij ab", "\N{SNOWMAN} c", "   ", "de de"]


def replaced(command, more):
  """A command with another flag, in place of its own of the same name."""
  at = command.index(more[0]) if more[0] in command else len(command)
  return [*command[:at], *command[at + 2 :], *more]


def text(lines):
  return "".join(f"{line}\n" for line in lines)

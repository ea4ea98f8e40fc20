"""Python's collection of garbage, less often."""

import gc


def collect_rarely() -> None:
  """Lets Python look for unreachable cycles after 50,000 new objects, for its 700 or 2,000.

  To trace and to lower a step makes millions of objects that stay: Python's
  default goes through them again and again, up to a tenth of a start. What
  belongs to no cycle, as arrays do, is freed at once in any case. To be called by
  programs, never by a library.
  """
  gc.set_threshold(50_000, 20, 20)

"""A self-contained HTML page from a template of this package.

Jinja2 makes it, because it escapes every value unless the template says otherwise. With `string.Template` each value
would have to be escaped by hand, and one that is forgotten would let a run folder's text run as a program.
"""

import base64
import hashlib
from pathlib import Path

import jinja2

_FOLDER = Path(__file__).parent


def render(name: str, **values: object) -> bytes:
  """The page of the template NAME.html, with NAME.css and NAME.js in it, as UTF-8.

  The page's Content-Security-Policy allows this style and this script alone, and no address at all. A character that
  UTF-8 does not have becomes a question mark.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  # The page of attention is mostly numbers, so a space after each comma would count.
  environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
  style, script = ((_FOLDER / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
  policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'"
  template = environment.get_template(f"{name}.html")
  return template.render(style=style, script=script, policy=policy, **values).encode(errors="replace")


def _source(text: str) -> str:
  """The entry of the page's security policy that allows this inline style or script, and no other."""
  return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

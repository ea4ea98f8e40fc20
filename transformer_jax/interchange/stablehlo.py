"""The format `stablehlo`: the run's greedy and beam search as programs that JAX alone runs (`jax.export`).

The number of sentences and their length are symbolic dimensions, so that one program takes any batch.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import unflatten_dict
from jax import export
from jax.errors import InconclusiveDimensionOperation

from transformer_jax import registry
from transformer_jax.config import Config
from transformer_jax.decoding import programs
from transformer_jax.decoding.beam_search import SearchOptions
from transformer_jax.interchange import expressible, model_card, vocabulary
from transformer_jax.model.params import numpy_by_name
from transformer_jax.model.special_tokens import EOS, PAD
from transformer_jax.runs.run import Model, Run
from transformer_jax.runtime.errors import InputError, first_line

PLATFORMS = ("cpu", "cuda", "tpu")
GREEDY, BEAM, PARAMETERS = "greedy.jax", "beam.jax", "parameters.npz"
_MOST_BYTES = (1 << 31) - (1 << 26)  # a file of jax.export has less than 2 GiB, and some of it is the program

# A model's parameters by name, and tokens `[sentences, length]` -> the best hypothesis of each sentence.
_Arrays = dict[str, jax.Array]
_Search = Callable[[_Arrays, jax.Array], _Arrays]

_USAGE = """\
```python
import jax, numpy, sentencepiece
from jax import export

{load}
with open("{program}", "rb") as file:
  search = jax.jit(export.deserialize(bytearray(file.read())).call)
{parameters}

def translate(lines):
  sources = [[*{source}.encode(line), {eos}] for line in lines]
  if max(map(len, sources)) > {longest}:
    raise ValueError("a line has more than {longest} tokens, its end included: divide it")
  length = min(-(-max(map(len, sources)) // 16) * 16, {longest})  # few lengths are few compilations
  rows = numpy.array([source + [{pad}] * (length - len(source)) for source in sources], numpy.int32)
  found = jax.device_get(search({arguments}rows))
  for tokens, length, score in zip(found["tokens"], found["lengths"], found["scores"]):
    yield {target}.decode(tokens[: length - 1].tolist()), float(score)

for text, score in translate(["A sentence."]):
  print(f"{{score:.6f}}\\t{{text}}")
```

It needs `jax`, `flatbuffers` and `sentencepiece`, and runs on {platforms}.

- {programs}
- Input: int32 `[sentences, length]`, any number of sentences, and a length from 2 to {longest}. Each sentence ends with
  {eos}, the end of a sentence, and then has {pad}, which is padding.
- Output: the best translation of each sentence. `tokens` is `[sentences, length + {extra}]`, `lengths` counts them with
  the end, `log_probs` has their log-probabilities, `scores` these over their length penalties.
- The run's own `translate` also leaves empty lines empty, for which the program invents a sentence, splits longer
  lines, and writes a space for a line break.
- The programs were written by JAX {version}. JAX runs them in versions up to 6 months newer and 3 weeks older."""


def require(config: Config) -> None:
  """Raises InputError if the model does not translate."""
  if not config.model.translates:
    expressible.refuse(config, "stablehlo")


def write(folder: Path, run: Run, model: Model, parameters: str) -> None:
  """Writes the folder: the programs, the SentencePiece model, and a page about them.

  The parameters are `inside` each program, or `beside` them in a file of their own.
  """
  arrays: dict[str, Any] = numpy_by_name(model.params)
  inside = parameters == "inside"
  size = sum(x.nbytes for x in arrays.values())
  if inside and size > _MOST_BYTES:
    raise InputError(f"{size / 1e9:.1f} GB of parameters are too many for a program: choose --parameters beside")
  vocabulary.write_models(folder, model.tokenizer)  # first, as it may refuse and the programs take long
  for name, beam_size in _programs(model.config).items():
    (folder / name).write_bytes(_program(model.config, beam_size, arrays, inside=inside))
  if not inside:
    with open(folder / PARAMETERS, "wb") as file:
      np.savez(file, **arrays)
  (folder / "README.md").write_bytes(_card(run, model, inside=inside))


def _programs(config: Config) -> dict[str, int]:
  """The beam size of each file."""
  beam_size = config.decode.beam_size
  return {GREEDY: 1} | ({BEAM: beam_size} if beam_size > 1 else {})


def _program(config: Config, beam_size: int, arrays: dict[str, np.ndarray], *, inside: bool) -> bytes:
  """A search, lowered for all platforms.

  Raises:
    InputError: the search cannot be lowered for a batch of any size, which a model of another package may cause.
  """
  search = _search(config, beam_size)
  limits = ["length >= 2", f"length <= {config.decode.max_source_length}"]
  shape = export.symbolic_shape("sentences, length", constraints=limits)
  source = jax.ShapeDtypeStruct(shape, jnp.int32)
  try:
    if inside:
      constants = {name: jnp.asarray(x) for name, x in arrays.items()}
      exported = export.export(jax.jit(lambda source: search(constants, source)), platforms=PLATFORMS)(source)
    else:
      exported = export.export(jax.jit(search), platforms=PLATFORMS)(arrays, source)
  except (TypeError, ValueError, NotImplementedError, InconclusiveDimensionOperation) as error:
    name = registry.name_of(config.model)
    raise InputError(
      f"the format stablehlo cannot express the {name} model: {first_line(error)}; {expressible.TAKES_ALL}"
    ) from error
  return bytes(exported.serialize())


def _search(config: Config, beam_size: int) -> _Search:
  model, decode = registry.module(config.model), config.decode
  options = dataclasses.replace(SearchOptions.of(config), beam_size=beam_size)

  def search(arrays: _Arrays, source: jax.Array) -> _Arrays:
    params = unflatten_dict(arrays, sep="/")
    found = programs.search_without_queue(model, options, params, source, extra_length=decode.extra_length)
    return {name: x[:, 0] for name, x in found._asdict().items()}

  return search


def _card(run: Run, model: Model, *, inside: bool) -> bytes:
  config, programs = model.config, _programs(model.config)
  beam = f"`{BEAM}` is the run's beam search with {config.decode.beam_size} hypotheses, `{GREEDY}` its greedy search."
  usage = _USAGE.format(
    program=[*programs][-1],
    programs=beam if BEAM in programs else f"`{GREEDY}` is the run's search, a greedy one.",
    parameters=""
    if inside
    else f'with numpy.load("{PARAMETERS}") as file:\n  parameters = jax.device_put(dict(file))\n',
    arguments="" if inside else "parameters, ",
    **vocabulary.usage(model.tokenizer),
    platforms=f"{', '.join(PLATFORMS[:-1])} and {PLATFORMS[-1]}",
    version=jax.__version__,
    longest=config.decode.max_source_length,
    extra=config.decode.extra_length,
    eos=EOS,
    pad=PAD,
  )
  header = {"library_name": "jax", "pipeline_tag": "translation"}
  return model_card.card(run, model, usage, header)

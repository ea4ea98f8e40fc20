"""Model families of other packages: registered for a process, or installed with an entry point."""

import dataclasses
import enum
import functools
import json
import sys
from types import SimpleNamespace
from typing import Optional

import flax.linen as nn
import jax.numpy as jnp
import pytest

from transformer_jax import registry
from transformer_jax.analysis import requirements
from transformer_jax.config import Config, flags, serialization
from transformer_jax.model.config import ModelConfig, Remat
from transformer_jax.model.transformer import Transformer
from transformer_jax.recurrent.config import LuongConfig
from transformer_jax.registry import Family
from transformer_jax.runtime.errors import InputError
from transformer_jax.tasks import classification, translation
from transformer_jax.training.initialization import shapes_of
from transformer_jax.training.task import Task, task_of


@dataclasses.dataclass(unsafe_hash=True)
class OwnConfig(ModelConfig):
  """With keys of its own."""

  depth: int = 3
  gate: Optional[int] = None  # noqa: UP045 - the older way to write a union


class OwnModel(Transformer):
  """The same under another name."""


class Renamed(nn.Module):
  """Its config has another name, so that nothing would find the first token of its decoder."""

  sizes: OwnConfig


class Unrelated:
  """Not of Flax."""

  def __init__(self, config: OwnConfig):
    self.config = config


OWN = Family(f"{__name__}:OwnConfig", f"{__name__}:OwnModel")


@pytest.fixture(autouse=True)
def families(monkeypatch):
  """What a test registers is forgotten."""
  monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))


@pytest.fixture
def install(tmp_path, monkeypatch):
  """Installs a package of one module with one family; returns what imported it."""
  monkeypatch.syspath_prepend(str(tmp_path))

  def install(name: str, source: str, point: str = "FAMILY"):
    (tmp_path / f"{name}.py").write_text(source)
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {name}:{point}\n")
    monkeypatch.delitem(sys.modules, name, raising=False)

  return install


@pytest.mark.parametrize("gate", [None, 7])
def test_a_key_may_have_a_union_in_the_older_way(gate):
  registry.register("own", OWN)
  assert serialization.from_dict({"model": {"family": "own", "gate": gate}}).model == OwnConfig(gate=gate)
  with pytest.raises(InputError, match=r"config\.model\.gate is 'x', but must be int or none"):
    serialization.from_dict({"model": {"family": "own", "gate": "x"}})


class Gate(enum.Enum):
  MISH = "mish"


@dataclasses.dataclass(unsafe_hash=True)
class TupleConfig(ModelConfig):
  """With a tuple, and with another type for a key that other families have, too."""

  kernels: tuple[int, ...] = (3, 5)
  pairs: tuple[tuple[int, Gate], ...] = ((2, Gate.MISH),)
  any_: tuple = (1, ("a", 2.5))
  hidden_size: str = ""
  layer_norm_epsilon: int = 1
  remat: Gate = Gate.MISH  # pyright: ignore[reportIncompatibleVariableOverride]


def test_a_key_may_have_a_tuple():
  """JSON has it as a list."""
  registry.register("own", OWN._replace(config=f"{__name__}:TupleConfig"))
  config = Config(model=TupleConfig(kernels=(7, 9, 11), pairs=((3, Gate.MISH), (5, Gate.MISH))))
  again = serialization.from_dict(json.loads(serialization.to_json(config)))
  assert again == config == serialization.validated(config) and hash(again.model) == hash(config.model)
  for value, message in (
    ([7, "9"], r"config\.model\.kernels\[1\] is '9', but must be int"),
    ("79", r"config\.model\.kernels is '79', but must be tuple"),
  ):
    with pytest.raises(InputError, match=message):
      serialization.from_dict({"model": {"family": "own", "kernels": value}})
  with pytest.raises(InputError, match=r"config\.model\.pairs\[0\] is \[3\], but must have 2 elements"):
    serialization.from_dict({"model": {"family": "own", "pairs": [[3]]}})


def test_a_key_of_two_families_may_have_two_types():
  registry.register("own", OWN._replace(config=f"{__name__}:TupleConfig"))
  keys = flags.read_keys(["--config.model.remat=layer"])
  assert serialization.changed(Config(), keys).model.remat is Remat.LAYER
  keys = flags.read_keys(["--config.model.remat=mish"])
  assert serialization.changed(Config(model=TupleConfig()), keys).model.remat is Gate.MISH
  with pytest.raises(InputError, match=r"config\.model\.remat is 'mish', but must be one of none, layer, attention"):
    serialization.changed(Config(), keys)
  keys = flags.read_keys(["--config.model.hidden_size=16"])
  assert serialization.changed(Config(model=LuongConfig()), keys).model.hidden_size == 16
  assert serialization.changed(Config(model=TupleConfig()), keys).model.hidden_size == "16"
  keys = flags.read_keys(["--config.model.layer_norm_epsilon=2"])  # ours is a float
  assert serialization.changed(Config(model=TupleConfig()), keys).model.layer_norm_epsilon == 2


def test_a_family_may_name_the_module_that_imports_its_config(monkeypatch):
  """As a package does that has its names in `__init__`."""
  monkeypatch.setitem(sys.modules, "own_names", SimpleNamespace(OwnConfig=OwnConfig))
  registry.register("own", OWN._replace(config="own_names:OwnConfig"))
  assert registry.name_of(OwnConfig()) == "own" and registry.config_class("own") is OwnConfig


def test_a_config_without_a_hash_is_refused():
  """Training would end in a TypeError after its last step."""
  registry.register("own", OWN._replace(config=f"{__name__}:NoHash"))
  with pytest.raises(InputError, match=r"NoHash' has no hash: write @dataclass\(unsafe_hash=True\)"):
    registry.config_class("own")
  with pytest.raises(InputError, match="has no hash"):
    serialization.validated(Config(model=NoHash()))


def test_the_mistake_of_one_family_is_not_that_of_others(monkeypatch):
  registry.register("bad", OWN._replace(config=f"{__name__}:NoHash"))
  registry.register("worse", OWN._replace(config="nowhere:Config"))
  monkeypatch.setitem(sys.modules, "own_names", SimpleNamespace(OwnConfig=OwnConfig))
  registry.register("own", OWN._replace(config="own_names:OwnConfig"))
  assert registry.name_of(OwnConfig()) == "own"
  del registry._FAMILIES["worse"]
  assert flags.read_keys(["--config.model.d_ff=7"]) == {"model.d_ff": 7}


@dataclasses.dataclass
class NoHash(ModelConfig):
  """A dataclass with __eq__ alone."""

  depth: int = 3


def test_the_shapes_of_a_module_that_is_defined_again_are_its_own(monkeypatch):
  """As in a notebook."""
  registry.register("own", OWN)
  config = Config(model=OwnConfig(vocab_size=31, num_layers=1, d_model=14, d_ff=11, num_heads=2))
  before = shapes_of(config)

  class Again(Transformer):
    def setup(self):
      super().setup()
      self.more = self.param("more", nn.initializers.zeros, (7,))

  monkeypatch.setattr(sys.modules[__name__], "OwnModel", Again)
  assert shapes_of(config) == {**before, "more": (7,)}


@pytest.mark.parametrize("name", list(registry.names()))
def test_every_family_has_what_it_names(name):
  config = registry.config_class(name)()
  assert registry.name_of(config) == name
  assert type(registry.module(config)).__name__ == registry.family(name).module.split(":")[1]
  assert isinstance(task_of(config), Task)


def test_a_registered_family_is_written_and_read_by_its_name():
  registry.register("own", OWN)
  registry.register("own", OWN)  # as a module that is imported twice does
  config = Config(model=OwnConfig(vocab_size=300, depth=5))
  values = serialization.to_dict(config)
  assert values["model"]["family"] == "own" and values["model"]["depth"] == 5
  assert serialization.from_dict(values) == config
  assert type(registry.module(config.model)) is OwnModel and task_of(config.model) is translation.TASK
  assert serialization.type_of("model.depth") is int


@dataclasses.dataclass(unsafe_hash=True)
class DerivedConfig(ModelConfig):
  """It has values that follow from its keys."""

  def __post_init__(self):
    super().__post_init__()
    self.twice = 2 * self.d_model

  @functools.cached_property
  def thrice(self):
    return 3 * self.d_model


@dataclasses.dataclass(unsafe_hash=True, slots=True)
class SlotsConfig(ModelConfig):
  """Its keys are in slots."""

  depth: int = 3


@pytest.mark.parametrize("kind", [DerivedConfig, SlotsConfig])
def test_only_the_keys_of_a_family_are_in_its_json(kind):
  registry.register("own", OWN._replace(config=f"{__name__}:{kind.__name__}"))
  config = Config(model=kind(d_model=24, num_heads=2))
  assert getattr(config.model, "thrice", 72) == 72
  found = serialization.validated(config)
  assert found == config and found.model.d_model == 24
  keys = {field.name for field in dataclasses.fields(kind)}
  assert serialization.to_dict(config)["model"].keys() == keys | {"family"}


def test_a_module_that_is_not_of_flax_is_refused():
  registry.register("own", OWN._replace(module=f"{__name__}:Unrelated"))
  with pytest.raises(InputError, match="Unrelated' is no Flax module"):
    registry.module(OwnConfig())


def test_a_module_whose_config_has_another_name_is_refused():
  registry.register("own", OWN._replace(module=f"{__name__}:Renamed"))
  with pytest.raises(InputError, match=r"'tests\.test_registry:Renamed' does not have its config as the field config"):
    registry.module(OwnConfig())


def test_a_name_is_given_once():
  with pytest.raises(InputError, match="there is another model family 'transformer': choose another name"):
    registry.register("transformer", OWN)


def test_a_config_belongs_to_one_family():
  """Otherwise the module of the other family would be trained."""
  message = "the model family 'own' has the config of the family 'luong', transformer_jax.recurrent.config:LuongConfig"
  with pytest.raises(InputError, match=message):
    registry.register("own", OWN._replace(config=registry.family("luong").config))


def test_a_config_of_no_family_is_said():
  with pytest.raises(InputError, match=r"OwnConfig is the config of no model family: install the package that has"):
    registry.name_of(OwnConfig())


def test_an_installed_family_is_found_by_its_name_and_by_its_config(install):
  install("own_package", f"from transformer_jax.registry import Family\nFAMILY = {OWN!r}\n")
  assert "own_package" in registry.names() and "own_package" not in sys.modules
  assert registry.config_class("own_package") is OwnConfig
  assert registry.name_of(OwnConfig()) == "own_package"


def test_no_package_is_imported_for_the_families_that_are_here(install):
  install("own_package", "raise RuntimeError('imported')")
  assert registry.name_of(ModelConfig()) == "transformer"
  assert registry.config_class("gpt").__name__ == "GPTConfig"


@pytest.mark.parametrize(
  "name", ["os:system", "tests.test_registry:OWN", "own_package:FAMILY", "../own_package", 7, None]
)
def test_a_name_in_a_run_folder_imports_nothing_but_what_is_installed_under_it(install, name):
  install("own_package", "raise RuntimeError('imported')")
  with pytest.raises(InputError, match=r"config\.model\.family is .*, but must be one of transformer, .*own_package"):
    registry.config_class(name)


@pytest.mark.parametrize(
  ("source", "message"),
  [
    ("raise RuntimeError('broken')", "own_package:FAMILY cannot be imported .RuntimeError: broken.: mend or uninstall"),
    ("", "own_package:FAMILY cannot be imported .AttributeError: .*: mend or uninstall it"),
    ("FAMILY = 3", "the model family 'own_package' of an installed package is no transformer_jax.registry.Family"),
  ],
)
def test_a_package_that_fails_is_named(install, source, message):
  install("own_package", source)
  with pytest.raises(InputError, match=message):
    registry.config_class("own_package")


@pytest.mark.parametrize(
  ("family", "message"),
  [
    (Family("nowhere:Config", OWN.module), "'nowhere:Config' cannot be imported: No module named 'nowhere'"),
    (Family(f"{__name__}:Missing", OWN.module), "Missing' cannot be imported"),
    (Family(f"{__name__}:OWN", OWN.module), "OWN' is no "),
    (Family("builtins:int", OWN.module), "'builtins:int' is no AnyModelConfig"),
  ],
)
def test_a_family_that_names_nothing_is_said(family, message):
  registry.register("own", family)
  with pytest.raises(InputError, match=message):
    registry.config_class("own")


def test_a_task_that_is_none_is_said():
  registry.register("own", OWN._replace(task="builtins:int"))
  with pytest.raises(InputError, match="the model family's 'builtins:int' is no Task"):
    task_of(OwnConfig())


def test_tasks_of_ours_say_which_model_they_need():
  registry.register("own", OWN._replace(task="transformer_jax.tasks.masked:TASK"))
  config = Config(model=OwnConfig())
  with pytest.raises(InputError, match="a model that classifies needs a BERTClassifierConfig"):
    classification.classes_of(config)
  with pytest.raises(InputError, match="the task of masked tokens needs a BERT"):
    shapes_of(config)


def test_the_operations_of_a_module_that_is_defined_again_are_its_own(monkeypatch):
  """As in a notebook."""
  registry.register("own", OWN)
  config = Config(model=OwnConfig(vocab_size=31, num_layers=1, d_model=14, d_ff=11, num_heads=2))
  before = requirements.flops(config).step

  class Again(Transformer):
    def encode(self, *inputs, deterministic=True):
      return super().encode(*inputs, deterministic=deterministic) @ jnp.ones((14, 14))

  monkeypatch.setattr(sys.modules[__name__], "OwnModel", Again)
  assert requirements.flops(config).step > before

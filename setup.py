"""What setup.cfg cannot say: the folder configs/ of the checkout is transformer_jax/configs of the package."""

from setuptools import find_packages, setup

setup(
  packages=[*find_packages(include=["transformer_jax*"]), "transformer_jax.configs"],
  package_dir={"transformer_jax.configs": "configs"},
)

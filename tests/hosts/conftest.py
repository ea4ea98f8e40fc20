import pytest

from tests.example_run import write_corpus


@pytest.fixture
def prefix(tmp_path):
  return write_corpus(tmp_path)

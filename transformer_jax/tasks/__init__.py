"""The training tasks of the model families."""

"""From a source sentence to its translation (§6.1)."""

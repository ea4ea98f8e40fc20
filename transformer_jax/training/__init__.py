"""Training (§5)."""

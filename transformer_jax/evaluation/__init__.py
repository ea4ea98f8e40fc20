"""How good translations are."""

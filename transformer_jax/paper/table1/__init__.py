"""The layer types that §4 compares (Table 1), each of one sequence `[n, model]`; no model uses them."""

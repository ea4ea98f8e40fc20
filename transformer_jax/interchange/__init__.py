"""Models in the formats of other libraries. Each format is a module with `require`, `write` and its option, if any."""

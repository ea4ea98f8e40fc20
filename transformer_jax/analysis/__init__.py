"""What a config or a function needs, told from its jaxpr, before anything runs."""

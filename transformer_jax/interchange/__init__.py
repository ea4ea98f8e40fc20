"""Models in the formats of other libraries. `formats` names the module of each, and its option, if any."""

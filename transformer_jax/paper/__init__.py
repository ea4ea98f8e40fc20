"""What the paper states: `contract` has it with checks; Tables 1 to 4 are here too."""

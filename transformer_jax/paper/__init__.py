"""What the paper states: `contract` has it with checks; Tables 1, 2 and 3 are here too."""

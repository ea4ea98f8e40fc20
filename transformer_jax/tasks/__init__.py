"""What each family of models is trained for."""

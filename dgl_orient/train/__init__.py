"""Training and its measurements."""

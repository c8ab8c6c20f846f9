"""The N-body networks against each other, on the same data in the same loop."""

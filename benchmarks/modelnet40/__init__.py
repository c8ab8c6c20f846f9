"""The tables of ModelNet40: networks against each other, on the same data within the same budget."""

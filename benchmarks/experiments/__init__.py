"""Experiments: networks compared by training them, on ModelNet40 and on N-body systems."""

"""Pretrained and trained models: load, predict."""

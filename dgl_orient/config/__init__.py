"""Recipes: names of models and data sets, the typed schema, and what a recipe describes."""

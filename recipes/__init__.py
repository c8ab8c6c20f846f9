"""The recipes' YAML files, installed as dgl_orient.recipes."""

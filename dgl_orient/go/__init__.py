"""Recipes and the command line: dglgo's verbs for point clouds.

Nothing is imported here, so that ``dgl-orient --help`` does not wait for torch.
"""

"""Recipes and the command line: dglgo's commands for point clouds.

Nothing is imported here, so that ``dgl-orient --help`` does not wait for torch.
"""

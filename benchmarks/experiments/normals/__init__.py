"""Normals at any density: the training of the plane fit, and errors on meshes and on ModelNet40."""

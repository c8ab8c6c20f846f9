"""ModelNet40: classification and normals by the protocols z/z, z/SO(3) and SO(3)/SO(3)."""

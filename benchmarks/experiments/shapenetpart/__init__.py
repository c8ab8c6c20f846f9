"""Part segmentation on ShapeNet-Part under rotations."""

"""QM9: networks that predict properties and tensors of molecules, on the same data in the same loop."""

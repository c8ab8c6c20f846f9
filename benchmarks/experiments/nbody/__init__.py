"""N-body: networks that predict the positions of charged particles, on the same data in the same loop."""

"""All networks in one loop: the same data, order, augmentation and CPU time for each."""

"""C = X Xᵀ for windows of samples, with a dial for reuse at each memory level: the design of the rooflines chapter."""

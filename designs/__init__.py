"""Designs for AMD XDNA NPUs, one folder each: source, kernels, models and reference."""

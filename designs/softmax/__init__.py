"""Softmax along rows: of rows that fit a compute tile, and of longer ones with a running maximum and sum."""

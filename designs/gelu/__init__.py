"""Bias and GELU over any part of the array: one stream a column, split over its compute tiles and joined again."""

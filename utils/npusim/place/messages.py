"""Moved to npusim.messages; this name stays until nobody imports it."""

from npusim.messages import count, explain, size

__all__ = ["count", "explain", "size"]

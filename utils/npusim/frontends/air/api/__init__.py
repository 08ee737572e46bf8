"""The part of ``air.api`` that is served: launches without a grid, herds of cores over a grid of tiles, elementwise arithmetic."""

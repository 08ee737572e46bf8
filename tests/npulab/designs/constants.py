"""What the design beside it imports."""

TILE = 64

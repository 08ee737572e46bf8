"""Matrix product on one compute tile, a square of them, or the whole array; see design.py."""

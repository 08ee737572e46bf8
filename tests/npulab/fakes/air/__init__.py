"""A stand-in for the real package."""

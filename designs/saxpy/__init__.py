"""y = a*x + y in bf16 on one compute tile: the first design of the book."""

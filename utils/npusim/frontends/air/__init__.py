"""The embedded ``air``: MLIR-AIR's Python bindings as far as designs use them, traced into the design graph.

A design file is run as it is; the classes here have the names and signatures of the real ones (mlir-air of August 2026) and
write down operations instead of building MLIR. :mod:`npusim.frontends.air.served` lists which name comes from where.
"""

"""The simulated NPU: traces IRON and MLIR-AIR designs, places them, runs them and says what they cost.

A design goes one way: ``frontends`` -> ``graph`` -> ``place`` -> ``machine`` -> ``engine`` -> ``report``.
"""

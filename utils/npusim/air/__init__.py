"""MLIR-AIR on the simulated NPU: launches, segments, herds and channels, placed and run on npusim's engine.

``lower`` makes a machine of an AIR design; the simulator is in :mod:`npusim.air.simulator`. How transfers are ordered is told
in :mod:`npusim.air.order`, what a core does at a channel in :mod:`npusim.air.corecode`.
"""

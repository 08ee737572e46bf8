"""Frontends: genuine ``aie.iron`` and ``air`` sources traced into :class:`npusim.graph.Design`."""

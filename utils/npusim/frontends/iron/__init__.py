"""The embedded IRON: the names and signatures of ``aie.iron`` 1.4 and what designs import beside it.

Designs get these modules through :mod:`npusim.frontends.finder`; which name comes from where is the table in
:mod:`npusim.frontends.iron.served`. Nothing here computes: classes gather what a design says, and
``Program.resolve_program`` writes it down as a :class:`npusim.graph.Design`.
"""

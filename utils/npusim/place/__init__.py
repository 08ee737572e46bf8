"""Placement: a design graph becomes a machine that could be loaded.

``place`` chooses tiles, lowers fifos to buffers, locks, DMA channels and buffer descriptors, assigns every resource as the
real tools do, routes the streams, and checks each limit on the way. What would not fit is a CapacityError, what breaks a
rule a DesignError; what the real tools accept although it is probably a mistake is a DesignWarning.

Depths: a fifo's depth given as one number is an upper bound for ends on a core (they get their largest acquire plus one);
given as a tuple (producer, consumer, ...) it is taken literally. See ``depths``.
"""

from __future__ import annotations

import warnings

from npusim.errors import DesignWarning
from npusim.graph import Design
from npusim.machine import DmaChannel, Machine
from npusim.place.cascades import link_cascades
from npusim.place.channels import assign_channels
from npusim.place.checks import check_fifos
from npusim.place.cores import bind_cores
from npusim.place.descriptors import assign_descriptors
from npusim.place.dma import build_chains
from npusim.place.draft import Draft
from npusim.place.explicit import declare, program_dmas
from npusim.place.fifos import split
from npusim.place.links import check_links
from npusim.place.locks import assign_locks
from npusim.place.memory import assign_addresses
from npusim.place.nets import make_nets
from npusim.place.patterns import check_patterns
from npusim.place.rings import make_rings
from npusim.place.routes import route
from npusim.place.sequence import bind_sequence, check_sequence
from npusim.place.sharing import check_sharing
from npusim.place.tiles import place_tiles
from npusim.place.usage import check_usage

__all__ = ["place"]


def place(design: Design) -> Machine:
    """The machine that a design becomes.

    Raises CapacityError (a limit exceeded), DesignError (a rule broken) or UnsupportedError (the simulator's gap, named).
    Emits a DesignWarning for each entry that it adds to the machine's ``warnings``.
    """
    if design.air is not None:
        return _place_air(design)
    check_fifos(design)
    draft = Draft(design, place_tiles(design))
    check_links(draft)
    split(draft)
    declare(draft)
    make_rings(draft)
    assign_channels(draft)
    program_dmas(draft)
    build_chains(draft)
    assign_locks(draft)
    assign_descriptors(draft)
    check_patterns(draft)
    cascades = link_cascades(draft)
    cores = bind_cores(draft)
    check_sharing(draft, cores)
    assign_addresses(draft)
    nets = make_nets(draft)
    check_usage(draft)
    host_channels = _host_channels(draft)
    host_bds = check_sequence(draft, host_channels)
    route(design.device, nets)
    sequence_buffers, sequence_locks = bind_sequence(draft)
    for text in draft.warnings:
        warnings.warn(text, DesignWarning, stacklevel=2)
    return Machine(
        device=design.device,
        name=design.name,
        buffers=draft.buffers,
        locks=draft.locks,
        channels=draft.channels,
        routes=nets,
        cores=cores,
        cascades=cascades,
        kernels={kernel.name: kernel for kernel in design.kernels},
        scratchpads=list(design.scratchpads),
        sequence=design.sequence.body if design.sequence else None,
        sequence_buffers=sequence_buffers,
        sequence_locks=sequence_locks,
        host_channels=host_channels,
        host_bds=host_bds,
        design=design,
        warnings=[*design.warnings, *draft.warnings],
    )


def _place_air(design: Design) -> Machine:
    """The machine of an MLIR-AIR design."""
    from npusim.air.machine import place_air  # it builds on this package

    machine = place_air(design)
    for text in machine.warnings[len(design.warnings) :]:
        warnings.warn(text, DesignWarning, stacklevel=3)
    return machine


def _host_channels(draft: Draft) -> dict[str, DmaChannel]:
    """The shim channels that the host sequence drives, by fifo or flow name."""
    return {c.fifo: c for c in draft.channels if c.tile.row == 0 and c.fifo is not None}

"""Cascade links: from a core to its south or east neighbour, one in and one out a core."""

from __future__ import annotations

from npusim.errors import DesignError
from npusim.graph import Cascade
from npusim.machine import CascadeLink, Coord
from npusim.messages import explain
from npusim.place.draft import Draft, label
from npusim.place.neighbours import adjacent, cascades


def link_cascades(draft: Draft) -> list[CascadeLink]:
    """The cascade links, checked. Raises DesignError for a direction that does not exist or a port used twice."""
    links: list[CascadeLink] = []
    for cascade in draft.design.cascades:
        source, dest = draft.at(cascade.source), draft.at(cascade.dest)
        _check(cascade, source, dest)
        links.append(CascadeLink(source, dest, cascade.loc))
    _check_twice(links)
    return links


def _check(cascade: Cascade, source: Coord, dest: Coord) -> None:
    if source.row < 2 or dest.row < 2:
        side = source if source.row < 2 else dest
        raise DesignError(
            explain(
                f"a cascade goes from {label(source)} to {label(dest)}, but only compute tiles have one.",
                phrase=f"{'shimTile' if side.row == 0 else 'memTile'} row has no cascade stream interface",
                hint="a cascade joins two workers.",
                loc=cascade.loc,
            )
        )
    if not adjacent(source, dest):
        raise DesignError(
            explain(
                f"a cascade goes from {label(source)} to {label(dest)}, which are no neighbours.",
                phrase="'aie.cascade_flow' op tiles must be adjacent",
                hint="a cascade runs from a core to its neighbour in the south or east: pin the two workers accordingly.",
                loc=cascade.loc,
            )
        )
    if not cascades(source, dest):
        raise DesignError(
            explain(
                f"a cascade goes from {label(source)} to {label(dest)}, that is {_heading(source, dest)}; cascades run only "
                "south (to the row below) and east.",
                phrase="cascade adjacency requires the destination tile to be one row South or one column East of the source "
                "tile",
                hint="swap the two tiles: put the sender north or west of the receiver.",
                loc=cascade.loc,
            )
        )


def _heading(source: Coord, dest: Coord) -> str:
    return "north" if dest.row > source.row else "west"


def _check_twice(links: list[CascadeLink]) -> None:
    for side, word in (("source", "out of"), ("dest", "into")):
        seen: dict[Coord, CascadeLink] = {}
        for link in links:
            tile: Coord = getattr(link, side)
            if tile in seen:
                raise DesignError(
                    explain(
                        f"two cascades go {word} {label(tile)}; a core has one cascade input and one output.",
                        details=[f"{other.source} to {other.dest} ({other.loc})" for other in (seen[tile], link)],
                        hint="chain the cores one after the other. The real tools accept this and lose the first cascade.",
                        loc=link.loc,
                    )
                )
            seen[tile] = link

"""What ``Program.resolve_program`` gives: the module of a design."""

from __future__ import annotations

from npusim import graph


class Operation:
    """The module's top operation, of which designs ask one thing."""

    def __init__(self, design: graph.Design) -> None:
        self.design = design

    def verify(self) -> bool:
        """True: a design that breaks a rule was refused while it was resolved."""
        return True

    def __str__(self) -> str:
        from npusim.mlir import print_design

        return print_design(self.design)


class Module:
    """A resolved design: the graph itself, and its text in MLIR's generic form (``str``)."""

    def __init__(self, design: graph.Design) -> None:
        self.design = design
        self.operation = Operation(design)

    def __str__(self) -> str:
        return str(self.operation)

    def __repr__(self) -> str:
        d = self.design
        return f"<module of {d.device.name}: {len(d.cores)} core(s), {len(d.fifos)} fifo(s)>"

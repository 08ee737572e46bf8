"""Modules and insertion points: where what a design writes down goes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from npusim import ir
from npusim.air.graph import Channel, Options, Program
from npusim.devices import Device, device
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.iron.current import runtime_name
from npusim.frontends.tracing import DesignTypeError, Scope
from npusim.graph import Design, KernelDecl, Sequence


class Context:
    """MLIR's context; there is nothing to set up here."""

    def __init__(self, load_on_create_dialects: Any = None, thread_pool: Any = None, *args: Any, **kwargs: Any) -> None:
        self.allow_unregistered_dialects = False

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *args: object) -> None:
        pass


class Location:
    """A place in a source file; operations here take theirs from the Python line that makes them."""

    @staticmethod
    def unknown(context: Any = None) -> Location:
        return Location()

    def __enter__(self) -> Location:
        return self

    def __exit__(self, *args: object) -> None:
        pass


class ModuleBody:
    """The place for channels and functions."""

    def __init__(self, module: Module) -> None:
        self.module = module


class Module:
    """A module being built or finished: channels, kernels, and the function that the host calls.

    ``design_for`` gives its design graph; ``str`` its text in generic form.
    """

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}
        self.kernels: dict[str, KernelDecl] = {}
        self.function: Sequence | None = None
        self.options = Options()
        self.target: str | None = None  # the device that the design itself was made for, if any
        self.body = ModuleBody(self)

    @staticmethod
    def create(loc: Any = None) -> Module:
        """An empty module."""
        return Module()

    @staticmethod
    def parse(asm: Any, context: Any = None) -> Module:
        """A module from its text in generic form."""
        from npusim.air.text import read_air

        design = read_air(str(asm))
        assert design.air is not None
        module = Module()
        module.channels, module.kernels = design.air.channels, {k.name: k for k in design.kernels}
        module.function = design.sequence
        return module

    @property
    def operation(self) -> Module:
        return self

    def verify(self) -> bool:
        """True: a module that breaks a rule was refused while it was made."""
        return True

    def design_for(self, on: Device | str | None = None, options: Options | None = None) -> Design:
        """The design graph for a device (by default the one it was made for, else the simulated NPU's). DesignError if the
        module has no function."""
        if self.function is None:
            raise DesignError("the module has no function: decorate one with @FuncOp.from_py_func(...)")
        chosen = on if isinstance(on, Device) else device(on or self.target or runtime_name())
        program = Program(dict(self.channels), self.function.body, self.function.name, options=options or self.options)
        return Design(
            chosen, self.function.name, kernels=list(self.kernels.values()), sequence=self.function, air=program
        )

    @property
    def design(self) -> Design:
        """The design graph for the device that the module was made for."""
        return self.design_for()

    def __str__(self) -> str:
        from npusim.air.text import print_air

        return print_air(self.design_for())


_building: list[Module] = []


def building(what: str) -> Module:
    """The module being built; ``what`` names what needs one."""
    if not _building:
        raise DesignError(f"{what} belongs into a module: make it in a function decorated with @module_builder")
    return _building[-1]


class InsertionPoint:
    """``with InsertionPoint(block):``: what is written next goes into that block, behind what is there."""

    def __init__(self, beforeOperation_or_block: Any, ref_operation: Any = None) -> None:
        self._at = beforeOperation_or_block
        if not isinstance(self._at, (ModuleBody, ir.Block)):
            raise DesignTypeError(f"an insertion point is made of a block here, got {self._at!r}")
        self._scope: Scope | None = None
        self._depth = 0
        self._behind: list[ir.Op] = []

    @staticmethod
    def at_block_begin(block: Any) -> InsertionPoint:
        raise UnsupportedError("InsertionPoint.at_block_begin is not served; InsertionPoint(block) appends")

    @staticmethod
    def at_block_terminator(block: Any) -> InsertionPoint:
        raise UnsupportedError("InsertionPoint.at_block_terminator is not served; InsertionPoint(block) appends")

    def __enter__(self) -> InsertionPoint:
        if isinstance(self._at, ModuleBody):
            _building.append(self._at.module)
            return self
        scope = self._scope = tracing.need("InsertionPoint")
        parent = self._owner(scope.block)
        ops = scope.block.ops
        self._behind = ops[ops.index(parent) + 1 :] if parent in ops else []
        self._depth = len(scope.stack)
        scope.later.update(self._behind)
        scope.stack.append(self._at)
        return self

    def _owner(self, block: ir.Block) -> ir.Op:
        """The operation of the current block that the new block belongs to."""
        for op in block.ops:
            if any(self._at is b for region in op.regions for b in region.blocks):
                return op
        raise DesignError(
            f"the insertion point at {tracing.here()} is no branch or body of an operation in the block being written"
        )

    def __exit__(self, *args: object) -> None:
        if isinstance(self._at, ModuleBody):
            _building.pop()
        elif self._scope is not None:
            self._scope.later.difference_update(self._behind)
            del self._scope.stack[self._depth :]


def module_builder(module_function: Callable[..., Any]) -> Callable[..., Module]:
    """Decorator: calling the function builds a module of what it declares and writes, and returns that."""

    @functools.wraps(module_function)
    def module_builder_wrapper(*args: Any, **kwargs: Any) -> Module:
        module = Module.create()
        with InsertionPoint(module.body):
            module_function(*args, **kwargs)
        check_channels(module)
        return module

    return module_builder_wrapper


def check_channels(module: Module) -> None:
    """DesignError for a put or get on a channel that the module does not declare."""
    if module.function is None:
        return
    for op in ir.walk(module.function.body):
        if op.name.startswith("air.channel.") and op.attrs["chan_name"] not in module.channels:
            declared = ", ".join(map(repr, module.channels)) or "none"
            raise DesignError(
                f"the {op.name.rpartition('.')[2]} at {op.loc} is on channel {op.attrs['chan_name']!r}, which the module "
                f"does not declare; declared: {declared}. The real toolchain says: \"'{op.name}' op found channel op not "
                'in pairs".'
            )

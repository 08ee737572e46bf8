"""MLIR's types as the bindings show them: ``IntegerType.get_signless(32)``, ``MemRefType.get([64], i32)``, ``T.i32()``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from npusim import types
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.tracing import DesignTypeError

_VECTOR = re.compile(r"vector<((?:\d+x)+)(\w+)>")


class Type:
    """A type; equal if its text is."""

    def __init__(self, name: str | Type) -> None:
        self.name = str(name)

    @staticmethod
    def parse(asm: str, context: Any = None) -> Type:
        """A scalar or vector type from its text."""
        text = str(asm).strip()
        if match := _VECTOR.fullmatch(text):
            return VectorType.get([int(n) for n in match.group(1).split("x")[:-1]], Type.parse(match.group(2)))
        types.numpy_dtype(text)  # raises for one that is not served
        return scalar_type(text)

    @property
    def plain(self) -> types.Type:
        """The type in npusim's IR."""
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Type({self})"


class IntegerType(Type):
    """``i32``, and ``ui32``, ``si32``."""

    @staticmethod
    def get_signless(width: int, context: Any = None) -> IntegerType:
        return IntegerType(f"i{width}")

    @staticmethod
    def get_unsigned(width: int, context: Any = None) -> IntegerType:
        return IntegerType(f"ui{width}")

    @staticmethod
    def get_signed(width: int, context: Any = None) -> IntegerType:
        raise UnsupportedError(
            f"the type si{width} is not served; signless integers (i{width}) are signed where it matters"
        )

    @property
    def width(self) -> int:
        """Bits."""
        return int(self.name.lstrip("ui"))


class FloatType(Type):
    """A floating-point type."""

    @property
    def width(self) -> int:
        """Bits."""
        return types.numpy_dtype(self.name).itemsize * 8


class _Named(Type):
    """A type that is one name: ``F32Type.get()``."""

    NAME = ""

    @classmethod
    def get(cls, context: Any = None) -> Any:
        return cls(cls.NAME)


class IndexType(_Named):
    NAME = "index"


class BF16Type(_Named, FloatType):
    NAME = "bf16"


class F16Type(_Named, FloatType):
    NAME = "f16"


class F32Type(_Named, FloatType):
    NAME = "f32"


class F64Type(_Named, FloatType):
    NAME = "f64"


_FLOATS = {t.NAME: t for t in (IndexType, BF16Type, F16Type, F32Type, F64Type)}


def scalar_type(name: str) -> Type:
    """The type object of a scalar's MLIR name."""
    if name in _FLOATS:
        return _FLOATS[name](name)
    return IntegerType(name)


class ShapedType(Type):
    """Memrefs and vectors."""

    @staticmethod
    def get_dynamic_size() -> int:
        """How static arrays mark an entry that is an operand."""
        return -(2**63)

    @staticmethod
    def get_dynamic_stride_or_offset() -> int:
        """How a layout marks an offset known only at run time."""
        return -(2**63)


class VectorType(ShapedType):
    """``vector<16xbf16>``."""

    @staticmethod
    def get(
        shape: Sequence[int], element_type: Type, *, scalable: Any = None, scalable_dims: Any = None, loc: Any = None
    ) -> VectorType:
        if scalable or scalable_dims:
            raise UnsupportedError("scalable vectors are not served")
        return VectorType(f"vector<{''.join(f'{n}x' for n in shape)}{element_type}>")

    @property
    def shape(self) -> list[int]:
        return [int(n) for n in self.name[len("vector<") : -1].split("x")[:-1]]

    @property
    def element_type(self) -> Type:
        return scalar_type(self.name[len("vector<") : -1].split("x")[-1])


class MemRefType(ShapedType):
    """``memref<16x32xbf16, 2 : i32>``: a shape, an element type and a memory space (0 DDR, 1 MemTile, 2 L1)."""

    def __init__(self, plain: types.MemRefType | MemRefType | Type) -> None:
        of = plain.plain if isinstance(plain, Type) else plain
        if not isinstance(of, types.MemRefType):
            raise DesignError(f"{plain} is no memref type")
        self._plain = of
        super().__init__(str(of))

    @staticmethod
    def get(
        shape: Sequence[int], element_type: Any, layout: Any = None, memory_space: Any = None, loc: Any = None
    ) -> MemRefType:
        if not isinstance(element_type, Type):
            raise DesignTypeError(f"a memref needs an element type such as T.i32(), got {element_type!r}")
        if not all(isinstance(n, int) and n > 0 for n in shape):
            raise DesignError(f"a memref needs positive integer sizes, got {list(shape)}")
        offset, strides = (0, None) if layout is None else (int(layout.offset), tuple(layout.strides))
        space = 0 if memory_space is None else int(memory_space)
        if space not in (0, 1, 2):
            raise DesignError(f"memory space {space} does not exist: 0 is DDR, 1 the MemTiles, 2 the compute tiles' L1")
        moving = offset == ShapedType.get_dynamic_stride_or_offset()
        made = types.MemRefType(tuple(shape), str(element_type), 0 if moving else offset, strides, moving, space)
        return MemRefType(made)

    @property
    def plain(self) -> types.Type:
        return self._plain

    @property
    def shape(self) -> list[int]:
        return list(self._plain.shape)

    @property
    def rank(self) -> int:
        return len(self._plain.shape)

    @property
    def element_type(self) -> Type:
        return scalar_type(self._plain.element)

    @property
    def memory_space(self) -> int | None:
        return self._plain.space or None

    def get_num_elements(self) -> int:
        return self._plain.size


class FunctionType(Type):
    """``(memref<8xi32>, i32) -> ()``."""

    def __init__(self, inputs: Sequence[Type], results: Sequence[Type]) -> None:
        self.inputs, self.results = list(inputs), list(results)
        super().__init__(f"({', '.join(map(str, inputs))}) -> ({', '.join(map(str, results))})")

    @staticmethod
    def get(inputs: Sequence[Type], results: Sequence[Type], context: Any = None) -> FunctionType:
        return FunctionType(inputs, results)


class StridedLayoutAttr:
    """The layout of a memref that is a view: an offset and strides in elements."""

    def __init__(self, offset: int, strides: Sequence[int]) -> None:
        self.offset, self.strides = offset, list(strides)

    @staticmethod
    def get(offset: int, strides: Sequence[int], context: Any = None) -> StridedLayoutAttr:
        return StridedLayoutAttr(offset, strides)


def shown(plain: types.Type) -> Type:
    """The type object of a type of npusim's IR."""
    if isinstance(plain, types.MemRefType):
        return MemRefType(plain)
    return VectorType(str(plain)) if str(plain).startswith("vector") else scalar_type(str(plain))


def _maker(name: str) -> Callable[..., Type]:
    def make(*args: Any) -> Type:
        return scalar_type(name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The type ``{name}``."
    return make


class _Types:
    """The module ``air.extras.types``: ``T.i32()``, ``T.memref(16, T.bf16())``."""

    bool = staticmethod(_maker("i1"))

    @staticmethod
    def memref(*shape: Any, element_type: Any = None, memory_space: Any = None, layout: Any = None) -> MemRefType:
        """``T.memref(16, 32, T.bf16())``: the sizes, then the element type."""
        if element_type is None:
            *shape, element_type = shape  # type: ignore[assignment]
        return MemRefType.get(list(shape), element_type, layout, memory_space)

    @staticmethod
    def vector(*shape: Any, element_type: Any = None) -> VectorType:
        """``T.vector(16, T.bf16())``."""
        if element_type is None:
            *shape, element_type = shape  # type: ignore[assignment]
        return VectorType.get(list(shape), element_type)


TYPE_FUNCTIONS: dict[str, Any] = {
    "bool": _Types.bool,
    "memref": _Types.memref,
    "vector": _Types.vector,
    **{
        name: _maker(name)
        for name in ("index", *_FLOATS, *(f"{sign}i{n}" for sign in ("", "u") for n in (8, 16, 32, 64)))
    },
}
T = type("T", (), {name: staticmethod(f) for name, f in TYPE_FUNCTIONS.items()})

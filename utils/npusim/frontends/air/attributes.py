"""MLIR's attributes as the bindings make them. An attribute holds a Python value; npusim's IR keeps only that."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from npusim.air.affine import AffineMap, IntegerSet
from npusim.frontends.tracing import DesignTypeError
from npusim.ir import Op


class Attribute:
    """A value, with a type where MLIR has one."""

    def __init__(self, value: Any, type: Any = None) -> None:
        self.value, self.type = value, type

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and (self.value, str(self.type)) == (other.value, str(other.type))

    def __hash__(self) -> int:
        return hash(str(self.value))

    def __str__(self) -> str:
        return f"{self.value}" + (f" : {self.type}" if self.type is not None else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


class IntegerAttr(Attribute):
    """``3 : i32``."""

    @staticmethod
    def get(type: Any, value: int) -> IntegerAttr:
        return IntegerAttr(int(value), type)


class FloatAttr(Attribute):
    """``1.0 : f32``."""

    @staticmethod
    def get(type: Any, value: float, loc: Any = None) -> FloatAttr:
        return FloatAttr(float(value), type)


class BoolAttr(Attribute):
    @staticmethod
    def get(value: bool, context: Any = None) -> BoolAttr:
        return BoolAttr(bool(value))


class StringAttr(Attribute):
    @staticmethod
    def get(value: str, context: Any = None) -> StringAttr:
        return StringAttr(str(value))


class FlatSymbolRefAttr(Attribute):
    """``@name``."""

    @staticmethod
    def get(value: str, context: Any = None) -> FlatSymbolRefAttr:
        return FlatSymbolRefAttr(str(value))


class UnitAttr(Attribute):
    """An attribute that only has a name."""

    @staticmethod
    def get(context: Any = None) -> UnitAttr:
        return UnitAttr(True)


class TypeAttr(Attribute):
    @staticmethod
    def get(value: Any, context: Any = None) -> TypeAttr:
        return TypeAttr(value)


class ArrayAttr(Attribute):
    """A list of attributes."""

    @staticmethod
    def get(attributes: Sequence[Any], context: Any = None) -> ArrayAttr:
        return ArrayAttr(tuple(attributes))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Any:
        return self.value[index]


class DictAttr(Attribute):
    @staticmethod
    def get(value: dict[str, Any] | None = None, context: Any = None) -> DictAttr:
        return DictAttr(dict(value or {}))


class DenseArrayAttr(Attribute):
    """``array<i64: 1, 2>``."""

    @classmethod
    def get(cls, values: Sequence[int], context: Any = None) -> Any:
        return cls(tuple(values))


class DenseI32ArrayAttr(DenseArrayAttr):
    """``array<i32: 1, 2>``."""


class DenseI64ArrayAttr(DenseArrayAttr):
    """``array<i64: 1, 2>``."""


class AffineMapAttr(Attribute):
    @staticmethod
    def get(affine_map: AffineMap) -> AffineMapAttr:
        return AffineMapAttr(affine_map)


class IntegerSetAttr(Attribute):
    @staticmethod
    def get(integer_set: IntegerSet) -> IntegerSetAttr:
        return IntegerSetAttr(integer_set)


def plain(attribute: Any) -> Any:
    """The Python value of an attribute (ints, strings, tuples; what already is one stays)."""
    if isinstance(attribute, Attribute):
        return plain(attribute.value)
    if isinstance(attribute, (list, tuple)):
        return tuple(plain(item) for item in attribute)
    if isinstance(attribute, (bool, int, float, str, AffineMap, IntegerSet)) or attribute is None:
        return attribute
    raise DesignTypeError(f"{attribute!r} is no attribute that is served here")


class AttributeMap(MutableMapping[str, Any]):
    """``op.attributes``: the attributes of an operation, by name."""

    def __init__(self, op: Op) -> None:
        self._op = op

    def __getitem__(self, name: str) -> Any:
        return Attribute(self._op.attrs[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._op.attrs[name] = plain(value)

    def __delitem__(self, name: str) -> None:
        del self._op.attrs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._op.attrs)

    def __len__(self) -> int:
        return len(self._op.attrs)

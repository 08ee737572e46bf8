"""Host tensors (``iron.tensor``, ``iron.zeros``, ...) on numpy arrays.

The simulated NPU reads and writes the host's memory itself, so both "devices" of a tensor are the same bytes: ``to()``
moves only the label. On real hardware a write through :attr:`NpuTensor.data` is not seen by the NPU; write by indexing,
``fill_``, ``mutate()`` or ``overwrite()``, which both agree on.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError, UnsupportedError

COHERENCE_GRANULE = 64
"""Bytes: host and device exchange whole cache lines, so a subview starts and ends on one."""


class NpuTensor:
    """A host array of fixed shape and dtype that a design can be called with."""

    DEVICES: tuple[str, ...] = ("cpu", "npu")
    DEFAULT_DEVICE = "npu"
    DEFAULT_INT_DTYPE = np.int64
    DEFAULT_FLOAT_DTYPE = np.float32
    FOLDS_DDR_ADDR_OFFSET = True

    def __init__(self, shape_or_data: Any, dtype: Any = np.uint32, device: str | None = "npu") -> None:
        """A tuple is a shape (filled with zeros), anything else is data, converted to ``dtype``."""
        self.dtype = dtype
        self.device = self.DEFAULT_DEVICE if device is None else device
        self._base: NpuTensor | None = None
        self._offset = 0
        self._data: np.ndarray[Any, Any]
        if isinstance(shape_or_data, tuple):
            self._data = np.zeros(shape_or_data, dtype=dtype)
        else:
            self._data = np.array(shape_or_data, dtype=dtype, order="C")

    @property
    def device(self) -> str:
        """``cpu`` or ``npu``: where the last writer was. Only a label here."""
        return self._device

    @device.setter
    def device(self, value: str) -> None:
        if value not in self.DEVICES:
            raise DesignError(f"Unsupported device: {value}")
        self._device = value

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The array itself."""
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._data.shape)

    @cached_property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel() * self.element_size

    @cached_property
    def element_size(self) -> int:
        """Bytes an element."""
        return int(np.dtype(self.dtype).itemsize)

    @property
    def base(self) -> NpuTensor | None:
        """The tensor that owns the memory, None if this one does."""
        return self._base

    @property
    def is_view(self) -> bool:
        return self._base is not None

    @property
    def storage_offset(self) -> int:
        """Bytes from the start of the owner's memory."""
        return self._offset

    @property
    def storage(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("NpuTensor.storage is not served by the simulated NPU; the memory is NpuTensor.data")

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The tensor as a numpy array (the same memory)."""
        return self._data

    def to(self, target_device: str) -> NpuTensor:
        """This tensor, labelled as being on ``target_device``."""
        if target_device not in ("cpu", "npu"):
            raise DesignError(f"Unknown device '{target_device}'")
        if target_device in self.DEVICES:
            self.device = target_device
        return self

    def fill_(self, value: Any) -> None:
        """Set every element to ``value``."""
        self._data.fill(value)

    @contextmanager
    def mutate(self) -> Iterator[np.ndarray[Any, Any]]:
        """The array for writing some of it; read-only after the block, so that a kept reference cannot write unseen."""
        array = self._data[...]
        try:
            yield array
        finally:
            array.flags.writeable = False

    def overwrite(self) -> Any:
        """Like :meth:`mutate`, promising to write all of it."""
        return self.mutate()

    def subview(self, offset: int, shape: Any, dtype: Any = None) -> NpuTensor:
        """A tensor on the memory from byte ``offset`` on. DesignError out of bounds or off the cache-line grid."""
        sizes = _shape_of(shape)
        kind = np.dtype(self.dtype if dtype is None else dtype)
        nbytes = math.prod(sizes) * kind.itemsize
        end = operator.index(offset) + nbytes
        what = f"subview(offset={offset}, shape={sizes}, dtype={kind})"
        if offset < 0 or end > self.nbytes:
            raise DesignError(f"{what} is out of bounds for a buffer of {self.nbytes} bytes")
        if offset % COHERENCE_GRANULE or (nbytes % COHERENCE_GRANULE and end != self.nbytes):
            raise DesignError(
                f"{what} spans bytes [{offset}, {end}), which is not aligned to the {COHERENCE_GRANULE}-byte coherence granule"
            )
        view = type(self).__new__(type(self))
        view.dtype, view._device = kind, self._device
        view._base, view._offset = self._base or self, self._offset + offset
        view._data = self._data.reshape(-1).view(np.uint8)[offset:end].view(kind).reshape(sizes)
        return view

    def to_torch(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("NpuTensor.to_torch is not served by the simulated NPU; use numpy()")

    def torch_view(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("NpuTensor.torch_view is not served by the simulated NPU; use numpy()")

    @classmethod
    def from_torch(cls, torch_tensor: Any, device: str | None = None, **kwargs: Any) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("NpuTensor.from_torch is not served by the simulated NPU; use iron.tensor(array)")

    def __getitem__(self, index: Any) -> Any:
        return self._data[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[index] = value

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._data, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({np.array2string(self._data, separator=',')}, device='{self.device}')"

    # ---- factories

    @classmethod
    def zeros(cls, *size: Any, out: Any = None, dtype: Any = None, device: Any = None, **kwargs: Any) -> NpuTensor:
        """A tensor of zeros (float32 unless ``dtype`` says otherwise). Sizes as numbers or one tuple."""
        return cls._filled(size, 0, out, dtype, device, kwargs)

    @classmethod
    def ones(cls, *size: Any, out: Any = None, dtype: Any = None, device: Any = None, **kwargs: Any) -> NpuTensor:
        """A tensor of ones (float32 unless ``dtype`` says otherwise). Sizes as numbers or one tuple."""
        return cls._filled(size, 1, out, dtype, device, kwargs)

    @classmethod
    def full(
        cls, size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, device: Any = None, **kwargs: Any
    ) -> NpuTensor:
        """A tensor of ``fill_value`` (float32 unless ``dtype`` says otherwise)."""
        return cls._filled((size,), fill_value, out, dtype, device, kwargs)

    @classmethod
    def zeros_like(cls, other: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> NpuTensor:
        """A tensor of zeros of another one's shape, dtype and device."""
        return cls(tuple(other.shape), dtype=dtype or other.dtype, device=device or other.device, **kwargs)

    @classmethod
    def rand(
        cls, *size: Any, out: Any = None, dtype: Any = None, device: Any = None, generator: Any = None, **kwargs: Any
    ) -> NpuTensor:
        """Uniform random numbers in [0, 1), float32 unless ``dtype`` says otherwise; never rounded up to 1."""
        if not size:
            raise DesignError("rand() received no arguments")
        tensor = cls._filled(size, 0, out, dtype, device, kwargs)
        draw = np.random.uniform if generator is None else generator.uniform
        values = draw(0.0, 1.0, size=tensor.shape).astype(tensor.dtype)
        if np.issubdtype(tensor.dtype, np.floating) or tensor.dtype == bfloat16:
            one = np.dtype(tensor.dtype).type(1)
            values = np.clip(values, 0, np.nextafter(one, np.dtype(tensor.dtype).type(0)))
        tensor.data[...] = values
        return tensor

    @classmethod
    def randint(
        cls,
        low: int,
        high: int,
        size: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        device: Any = None,
        generator: Any = None,
        **kwargs: Any,
    ) -> NpuTensor:
        """Random integers in [low, high), int64 unless ``dtype`` says otherwise."""
        tensor = cls._filled((size,), 0, out, dtype or np.int64, device, kwargs)
        draw = np.random.randint if generator is None else generator.integers
        tensor.data[...] = draw(low, high, size=tensor.shape, dtype=tensor.dtype)
        return tensor

    @classmethod
    def arange(
        cls,
        start: Any = 0,
        end: Any = None,
        step: Any = 1,
        *,
        shape: Any = None,
        out: Any = None,
        dtype: Any = None,
        device: Any = None,
        **kwargs: Any,
    ) -> NpuTensor:
        """The numbers from ``start`` up to, not including, ``end``; int64 unless a bound or ``dtype`` says otherwise."""
        if end is None:
            start, end = 0, start
        if dtype is None:
            real = any(isinstance(x, float) for x in (start, end, step))
            dtype = cls.DEFAULT_FLOAT_DTYPE if real else cls.DEFAULT_INT_DTYPE
        values = np.arange(start, end, step, dtype=dtype)
        sizes = (values.size,) if shape is None else tuple(shape)
        if math.prod(sizes) != values.size:
            raise DesignError(
                f"iron.arange: shape={sizes} (prod={math.prod(sizes)}) does not match generated range size {values.size}"
            )
        tensor = cls._filled((sizes,), 0, out, dtype, device, kwargs)
        tensor.data[...] = values.reshape(sizes)
        return tensor

    @classmethod
    def _filled(
        cls, size: tuple[Any, ...], value: Any, out: Any, dtype: Any, device: Any, kwargs: dict[str, Any]
    ) -> NpuTensor:
        """``out`` if given and of this shape, dtype and device, else a new tensor; filled with a value."""
        shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        dtype, device = dtype or cls.DEFAULT_FLOAT_DTYPE, device or cls.DEFAULT_DEVICE
        tensor = cls(shape, dtype=dtype, device=device, **kwargs) if out is None else out
        if (tensor.shape, tensor.dtype, tensor.device) != (shape, dtype, device):
            raise DesignError("Provided `out` tensor must match shape, dtype, and device")
        tensor.fill_(value)
        return tensor


Tensor = NpuTensor


class CPUOnlyTensor(NpuTensor):
    """A tensor that lives on the host only."""

    DEVICES = ("cpu",)
    DEFAULT_DEVICE = "cpu"

    def __init__(self, shape_or_data: Any, dtype: Any = np.uint32, device: str | None = "cpu") -> None:
        super().__init__(shape_or_data, dtype, device)


def _shape_of(shape: Any) -> tuple[int, ...]:
    try:
        sizes: tuple[int, ...] = (operator.index(shape),)
    except TypeError:
        if isinstance(shape, (str, bytes)):
            raise TypeError(f"shape must be an integer or a sequence, got {shape!r}") from None
        sizes = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise DesignError(f"shape extents must not be negative, got {sizes}")
    return sizes

"""``iron.tensor`` and its relatives: make tensors of the chosen tensor class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from npusim.errors import DesignError, DesignWarning
from npusim.frontends.iron.tensor import NpuTensor

_tensor_class: type[NpuTensor] = NpuTensor


def tensor(*args: Any, **kwargs: Any) -> NpuTensor:
    """A tensor of a shape (tuple) or of data; the dtype of an array must agree with ``dtype`` (TypeError)."""
    if args and isinstance(args[0], np.ndarray) and "dtype" in kwargs:
        own, wanted = args[0].dtype, np.dtype(kwargs["dtype"])
        if own != wanted:
            raise TypeError(
                f"iron.tensor: ndarray dtype {own!r} does not match dtype= kwarg {wanted!r}.  Cast the array "
                f"beforehand (e.g. arr.astype({wanted!r})) or drop the dtype= kwarg."
            )
    if args and isinstance(args[0], np.ndarray) and "dtype" not in kwargs and args[0].dtype != np.uint32:
        warnings.warn(
            f"iron.tensor converts a {args[0].dtype} array to uint32 unless dtype= is given",
            DesignWarning,
            stacklevel=2,
        )
    return _tensor_class(*args, **kwargs)


def zeros(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.zeros`."""
    return _tensor_class.zeros(*args, **kwargs)


def ones(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.ones`."""
    return _tensor_class.ones(*args, **kwargs)


def full(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.full`."""
    return _tensor_class.full(*args, **kwargs)


def rand(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.rand`."""
    return _tensor_class.rand(*args, **kwargs)


def randint(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.randint`."""
    return _tensor_class.randint(*args, **kwargs)


def arange(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.arange`."""
    return _tensor_class.arange(*args, **kwargs)


def zeros_like(*args: Any, **kwargs: Any) -> NpuTensor:
    """See :meth:`NpuTensor.zeros_like`."""
    return _tensor_class.zeros_like(*args, **kwargs)


def set_tensor_class(cls: Any) -> None:
    """Choose the class of the tensors made from now on; DesignError unless it is a kind of NpuTensor."""
    global _tensor_class
    if not (isinstance(cls, type) and issubclass(cls, NpuTensor)):
        raise DesignError(f"Tensors must inherit from the NpuTensor class but {cls} does not.")
    _tensor_class = cls


def npu_runtime_folds_ddr_addr_offset() -> bool:
    """What the compiler asks a real runtime about its addresses; meaningless here, the default of the real package."""
    return _tensor_class.FOLDS_DDR_ADDR_OFFSET


def ceildiv(a: Any, b: Any) -> Any:
    """The smallest integer that is at least a / b."""
    return -(a // -b)

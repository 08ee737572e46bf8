"""``aie.iron.dtype``: element types by short names."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from npusim.errors import DesignError

dtype_map: dict[str, Any] = {"bf16": bfloat16, "i8": np.int8, "i16": np.int16, "f32": np.float32, "i32": np.int32}


def str_to_dtype(dtype_str: str) -> type:
    """The element type of a short name; DesignError for an unknown one."""
    if dtype_str not in dtype_map:
        raise DesignError(f"unrecognized dtype {dtype_str!r}; known: {', '.join(dtype_map)}")
    return dtype_map[dtype_str]  # type: ignore[no-any-return]


def dtype_to_str(dtype: type) -> str:
    """The short name of an element type; DesignError for one that has none."""
    for name, known in dtype_map.items():
        if known == dtype:
            return name
    raise DesignError(f"unrecognized dtype {dtype!r}; known: {', '.join(dtype_map)}")

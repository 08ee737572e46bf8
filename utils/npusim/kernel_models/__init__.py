"""Models of the kernels that come with mlir-aie: elementwise, reductions, activations, linear algebra.

The factories of ``iron.kernels`` (:mod:`npusim.frontends.iron.kernel_library`) declare them; designs read from MLIR name
them as the compiler links them, some with eight hexadecimal digits in front that tell variants apart. A kernel whose
variants differ in more than their argument types (``mm``: layouts) is registered by its factory only.
"""

from __future__ import annotations

import re

from npusim.kernel_models import activation, eltwise, linalg, reduce
from npusim.kernels import KernelModel

MODELS: dict[str, KernelModel] = {**eltwise.MODELS, **reduce.MODELS, **activation.MODELS, **linalg.MODELS}
"""By the name of the C++ function."""


def find(symbol: str) -> KernelModel | None:
    """The model of a symbol, with or without the digits that tell variants apart; None if there is none."""
    return MODELS.get(re.sub(r"^[0-9a-f]{8}_", "", symbol))

"""All shared kernels by name. The simulated NPU finds ``MODELS`` here, beside the kernels' sources."""

from __future__ import annotations

from designs.kernels import models_matmul, models_merge, models_rows, models_softmax, models_tiles
from designs.kernels.spec import Kernel
from npusim.kernels import KernelModel

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for module in (models_tiles, models_matmul, models_softmax, models_merge, models_rows)
    for kernel in module.KERNELS
}
MODELS: dict[str, KernelModel] = {name: kernel.model() for name, kernel in KERNELS.items()}

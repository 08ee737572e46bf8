"""The factories that are named but not served: convolutions and vision. Each raises UnsupportedError with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from npusim.errors import UnsupportedError

NAMES = [
    "add_weighted",
    "bitwise_and",
    "bitwise_or",
    "bn_conv2dk1_i8",
    "bn_conv2dk1_input_split_partial_put_ui8",
    "bn_conv2dk1_input_split_partial_skip_get",
    "bn_conv2dk1_partial_get_relu_i8",
    "bn_conv2dk1_partial_put_i8",
    "bn_conv2dk1_relu",
    "bn_conv2dk1_relu_xy_pool_padded",
    "bn_conv2dk1_skip",
    "bn_conv2dk3",
    "bn_conv2dk3_dw",
    "bn_conv2dk3_dw_out_split",
    "bn_fc_relu_ui16_pad",
    "conv2dk1",
    "conv2dk14",
    "conv2dk1_i8",
    "conv2dk1_skip",
    "conv2dk1_skip_init",
    "conv2dk3",
    "filter2d",
    "gray2rgba",
    "rgba2gray",
    "rgba2hue",
    "threshold",
]


def refuse(name: str) -> Callable[..., NoReturn]:
    """A function that refuses to make kernel ``name``."""

    def factory(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"iron.kernels.{name} is not served: npusim has no model of it; write an ExternalFunction with a model of your "
            "own (npusim.kernels.model) instead"
        )

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = f"Not served: ``{name}`` raises UnsupportedError."
    return factory

"""The factories that are named but not served: convolutions and vision. Each raises UnsupportedError with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Any, NoReturn

import numpy as np

from npusim.errors import UnsupportedError

_ARGUMENTS = {
    "add_weighted": "line_width=1920 dtype=uint8 use_chess=False",
    "bitwise_and": "line_width=1920 dtype=uint8 use_chess=False",
    "bitwise_or": "line_width=1920 dtype=uint8 use_chess=False",
    "bn_conv2dk1_i8": "input_width=32 input_channels=64 output_channels=64",
    "bn_conv2dk1_input_split_partial_put_ui8": "input_width=7 input_channels=240 weight_count=9600 * block_index=13",
    "bn_conv2dk1_input_split_partial_skip_get": "input_width=7 input_channels=240 output_channels=80 weight_count=9600 * block_index=13",
    "bn_conv2dk1_partial_get_relu_i8": "input_width=7 input_channels=80 output_channels=480 weight_count=4800 * block_index=13",
    "bn_conv2dk1_partial_put_i8": "input_width=7 input_channels=80 weight_count=4800 * block_index=13",
    "bn_conv2dk1_relu": "input_width=32 input_channels=64 output_channels=64",
    "bn_conv2dk1_relu_xy_pool_padded": "input_width=7 input_channels=80 output_channels=1280 weight_chunk_count=None",
    "bn_conv2dk1_skip": "input_width=32 input_channels=64 output_channels=64 skip_dtype=uint8",
    "bn_conv2dk3": "input_width=32 input_channels=64 output_channels=64",
    "bn_conv2dk3_dw": "input_width=32 input_channels=64 output_channels=64 stride=1",
    "bn_conv2dk3_dw_out_split": "input_width=7 input_channels=480 output_split_channels=240 * block_index=13",
    "bn_fc_relu_ui16_pad": "input_channels=1280 output_channels=16 weight_chunk_count=None",
    "conv2dk1": "input_width=32 input_channels=64 output_channels=64 act_dtype=int8",
    "conv2dk14": "input_width=224 input_channels=16 output_channels=16 kernel_width=14",
    "conv2dk1_i8": "input_width=32 input_channels=64 output_channels=64",
    "conv2dk1_skip": "input_width=32 input_channels=64 output_channels=64 act_dtype=int8",
    "conv2dk1_skip_init": "input_width=32 input_channels=64 output_channels=64 act_dtype=int8 skip_input_channels=None",
    "conv2dk3": "input_width=32 input_channels=64 output_channels=64 act_dtype=int8 weight_output_channels=None",
    "filter2d": "line_width=1920 use_chess=False",
    "gray2rgba": "line_width=1920 use_chess=False",
    "rgba2gray": "line_width=1920 use_chess=False",
    "rgba2hue": "line_width=1920 use_chess=False",
    "threshold": "line_width=1920 dtype=uint8 use_chess=False",
}
"""Names and defaults of their arguments, ``*`` before those that can be given by name only."""

NAMES = list(_ARGUMENTS)
_WORDS: dict[str, Any] = {"int8": np.int8, "uint8": np.uint8, "None": None, "False": False}


def refuse(name: str) -> Callable[..., NoReturn]:
    """A function that refuses to make kernel ``name``, with the real one's signature."""

    def factory(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"iron.kernels.{name} is not served: npusim has no model of it; write an ExternalFunction with a model of your "
            "own (npusim.kernels.model) instead"
        )

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = f"Not served: ``{name}`` raises UnsupportedError."
    factory.__signature__ = Signature(list(_parameters(_ARGUMENTS[name])))  # type: ignore[attr-defined]
    return factory


def _parameters(text: str) -> Iterator[Parameter]:
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in text.split():
        if part == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        argument, _, value = part.partition("=")
        yield Parameter(argument, kind, default=_WORDS[value] if value in _WORDS else int(value))

"""Host tensors: shapes, dtypes, factories, views."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError, DesignWarning, UnsupportedError
from npusim.frontends.iron import tensor_factory as iron
from npusim.frontends.iron.tensor import CPUOnlyTensor, NpuTensor


def test_the_recorded_surface():
    """The public names that the recorded probe of the real package printed (``to_torch`` and the like refuse)."""
    recorded = (
        "DEFAULT_DEVICE DEFAULT_FLOAT_DTYPE DEFAULT_INT_DTYPE DEVICES FOLDS_DDR_ADDR_OFFSET arange base data device dtype "
        "element_size fill_ from_torch full is_view mutate nbytes numel numpy ones overwrite rand randint shape storage "
        "storage_offset subview to to_torch torch_view zeros zeros_like"
    )
    x = iron.arange(32, dtype=np.int32)
    assert set(recorded.split()) <= {name for name in dir(x) if not name.startswith("_")}
    assert (x.shape, x.dtype) == ((32,), np.int32)
    assert x.numpy()[:4].tolist() == [0, 1, 2, 3]
    assert (x[3], x[0:2].tolist()) == (3, [0, 1])


@pytest.mark.parametrize("make", [iron.zeros, iron.ones, iron.rand])
@pytest.mark.parametrize("size", [(4, 6), ((4, 6),), ([4, 6],)])
def test_sizes_as_numbers_or_one_sequence(make, size):
    assert make(*size).shape == (4, 6)
    assert make(*size).dtype == np.float32


def test_values():
    assert iron.zeros(3, dtype=np.int8).numpy().tolist() == [0, 0, 0]
    assert iron.ones(2, 2, dtype=bfloat16).numpy().tolist() == [[1, 1], [1, 1]]
    assert iron.full((3,), 7, dtype=np.int32).numpy().tolist() == [7, 7, 7]
    assert iron.full(3, 7).shape == (3,)
    assert iron.arange(2, 8, 2).numpy().tolist() == [2, 4, 6]
    assert iron.arange(4.0).dtype == np.float32
    assert iron.arange(6, shape=(2, 3)).shape == (2, 3)
    assert iron.zeros_like(iron.ones(2, dtype=np.int16)).dtype == np.int16
    with pytest.raises(ValueError, match="does not match generated range size 6"):
        iron.arange(6, shape=(2, 4))


def test_random_values():
    x = iron.randint(-3, 4, (1000,), dtype=np.int8)
    assert set(x.numpy().tolist()) == set(range(-3, 4))
    low = iron.rand(4000, dtype=bfloat16, generator=np.random.default_rng(0)).numpy().astype(np.float32)
    assert low.min() >= 0
    assert low.max() < 1  # 1 - 2**-9 would round up to 1 in bf16
    assert iron.randint(0, 9, 5, generator=np.random.default_rng(1)).dtype == np.int64
    again = [iron.rand(8, generator=np.random.default_rng(2)).numpy().tolist() for _ in range(2)]
    assert again[0] == again[1]
    with pytest.raises(ValueError, match="no arguments"):
        iron.rand()


def test_from_data():
    assert iron.tensor([1, 2, 3], dtype=np.int16).numpy().tolist() == [1, 2, 3]
    array = np.array([0.5, 1.5], dtype=np.float32)
    assert iron.tensor(array, dtype=np.float32).numpy().tolist() == [0.5, 1.5]
    with pytest.raises(TypeError, match="does not match"):
        iron.tensor(array, dtype=np.int32)
    with pytest.warns(DesignWarning, match="converts a float32 array to uint32"):
        assert iron.tensor(array).dtype == np.uint32


def test_writing():
    x = iron.zeros(4, dtype=np.int32)
    x[1] = 5
    with x.mutate() as array:
        array[2] = 6
    assert x.numpy().tolist() == [0, 5, 6, 0]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    x.fill_(3)
    assert np.asarray(x).tolist() == [3] * 4
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    assert len(x) == 4
    assert (x.numel(), x.element_size, x.nbytes) == (4, 4, 16)


def test_devices_are_labels():
    x = iron.zeros(4)
    assert x.device == "npu"
    assert x.to("cpu") is x
    assert x.device == "cpu"
    with pytest.raises(ValueError, match="gpu"):
        x.to("gpu")
    with pytest.raises(ValueError, match="Unsupported device: gpu"):
        iron.zeros(4, device="gpu")


def test_out():
    x = iron.zeros(4, dtype=np.int32)
    assert iron.ones(4, dtype=np.int32, out=x) is x
    assert x.numpy().tolist() == [1] * 4
    with pytest.raises(ValueError, match="out"):
        iron.ones(5, dtype=np.int32, out=x)


def test_views_share_memory():
    x = iron.arange(64, dtype=np.int32)
    view = x.subview(64, (4, 4))
    view[0, 0] = -1
    assert x[16] == -1
    inner = view.subview(0, 32, dtype=np.int16)
    assert (inner.base, inner.storage_offset, inner.is_view) == (x, 64, True)
    assert inner.numpy()[:2].tolist() == [-1, -1]
    with pytest.raises(ValueError, match="out of bounds"):
        x.subview(192, (32,))
    with pytest.raises(ValueError, match="64-byte coherence granule"):
        x.subview(4, (16,))
    assert x.subview(192, (16,)).numpy()[0] == 48


def test_choosing_a_class():
    iron.set_tensor_class(CPUOnlyTensor)
    try:
        assert iron.zeros(3).device == "cpu"
    finally:
        iron.set_tensor_class(NpuTensor)
    with pytest.raises(ValueError, match="must inherit from the NpuTensor class"):
        iron.set_tensor_class(int)


def test_what_is_not_served_says_so():
    for refused in (
        lambda: iron.zeros(3).to_torch(),
        lambda: NpuTensor.from_torch(None),
        lambda: iron.zeros(3).storage,
    ):
        with pytest.raises(UnsupportedError, match="not served"):
            refused()
    with pytest.raises(DesignError):
        iron.zeros(3).subview(0, (-1,))

"""A stand-in: tensors that remember, kernels that are only declared."""

import numpy as np

current = []


def set_current_device(device):
    current[:] = [device]


class Tensor:
    def __init__(self, data, dtype):
        assert data.dtype == np.dtype(dtype)
        self.data = np.array(data)

    def numpy(self):
        return self.data


def tensor(*args, **kwargs):
    return Tensor(*args, **kwargs)


class ExternalFunction:
    def __init__(self, name, source_file=None, source_string=None, compile_flags=None):
        self._source_file, self._source_string, self._compile_flags = source_file, source_string, compile_flags
        ExternalFunction._instances.add(self)


ExternalFunction._instances = set()

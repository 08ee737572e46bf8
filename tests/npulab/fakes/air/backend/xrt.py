"""A stand-in: refuses what the real one refuses, "compiles" into the current directory, and runs what the test says.

``behaviour.run`` gets the buffers of a run, ``behaviour.times`` the microseconds that runs take, ``behaviour.errors`` what is
raised where ("compile", "load", "run").
"""

import os
import re
from types import SimpleNamespace

import numpy as np

from air.ir import Module

behaviour = SimpleNamespace(
    run=lambda *buffers: None,
    times=[],
    errors={},
    backends=[],
    compiled=[],
    loaded=[],
    calls=[],
    unloads=0,
    leave_out=(),
)


class AirBackendError(Exception):
    def __init__(self, message):
        super().__init__(message)


def _raise(where):
    if where in behaviour.errors:
        raise behaviour.errors[where]


class XRTCompileArtifact:
    def __init__(self, output_binary, kernel, insts, txn_header=None):
        self.output_binary, self.kernel, self.insts, self.txn_header = output_binary, kernel, insts, txn_header


class XRTBackend:
    def __init__(
        self,
        verbose=False,
        target_device=None,
        omit_while_true_loop=False,
        omit_pingpong="",
        lower_linalg_to_func=None,
        derive_library_call=False,
        air_loop_fusion=False,
        runtime_loop_tiling_sizes=[],  # noqa: B006 - as recorded
        omit_auto_broadcast=False,
        channel_multiplexing=[],  # noqa: B006
        use_lock_race_condition_fix=False,
        use_lock_race_condition_fix_v2=False,
        coalesce_shim_dma=False,
        trace_offset=0,
        trace_size=0,
        output_format="xclbin",
        kernel_name="",
        instance_name="",
        kernel_id="",
        xclbin_input="",
        num_device_cols=0,
        debug_ir=False,
        emit_txn_cpp=False,
        bf16_emulation=False,
        stack_size=1024,
        n_perf_iters=0,
        n_warmup_iters=10,
    ):
        if use_lock_race_condition_fix and use_lock_race_condition_fix_v2:
            raise AirBackendError("mutually exclusive; enable at most one")
        self.target_device, self.num_device_cols = target_device, num_device_cols
        self.output_format, self.instance_name = output_format, instance_name
        self.omit_pingpong, self.runtime_loop_tiling_sizes = omit_pingpong, runtime_loop_tiling_sizes
        self.n_perf_iters, self.n_warmup_iters = n_perf_iters, n_warmup_iters
        self.last_latency_us, self.currently_loaded = None, False
        behaviour.backends.append(self)

    def compile(self, air_module, output_binary_name="air", kernel="MLIR_AIE", insts="air.insts.bin"):
        if self.currently_loaded:
            raise AirBackendError("Cannot use XRTBackend to compile while the artifact is currently loaded.")
        assert isinstance(air_module, Module)
        if self.output_format == "elf" and "npu1" in self.target_device:
            raise AirBackendError(f"output_format='elf' is not supported for {self.target_device} target.")
        if self.num_device_cols > (3 if self.target_device == "npu1" else 7):
            raise AirBackendError(f"Invalid num_device_cols value: {self.num_device_cols}.")
        with open("air.mlir", "w") as file:
            file.write(str(air_module))
        behaviour.compiled.append(
            SimpleNamespace(folder=os.getcwd(), path=os.environ["PATH"], peano=os.environ.get("PEANO_INSTALL_DIR"))
        )
        _raise("compile")
        for name in re.findall(r'link_with\s*=\s*"([^"]+)"', str(air_module)):
            if not os.path.exists(name):
                raise AirBackendError(f"aircc compilation failed:\nld.lld: error: cannot open {name}")
        binary = f"{output_binary_name}.{self.output_format}"
        for name in {binary, insts} - ({insts} if self.output_format == "elf" else set()) - set(behaviour.leave_out):
            with open(name, "w") as file:
                file.write("made")
        elf = self.output_format == "elf" and self.instance_name != ""
        return XRTCompileArtifact(binary, f"main:{self.instance_name}" if elf else kernel, insts)

    def load(self, artifact):
        _raise("load")
        if self.currently_loaded:
            raise AirBackendError("Cannot use XRTBackend to compile while the artifact is currently loaded.")
        elf = artifact.output_binary.endswith(".elf")
        for file in [artifact.output_binary] + ([] if elf else [artifact.insts]):
            if not os.path.isfile(file):
                raise AirBackendError(f"Cannot load XRTCompileArtifact because {file} file does not exist")
        behaviour.loaded.append(artifact)

        def invoker(*args):
            if not elf and len(args) > 5:
                raise ValueError("Too many arguments")
            assert all(isinstance(a, np.ndarray) and a.flags.c_contiguous for a in args), "XRT copies memory as it lies"
            buffers = [np.array(a).reshape(-1) for a in args]
            behaviour.calls.append(buffers)
            for _ in range((self.n_warmup_iters + self.n_perf_iters) if self.n_perf_iters else 1):
                _raise("run")
                behaviour.run(*buffers)
            if self.n_perf_iters:
                self.last_latency_us = behaviour.times.pop(0) if behaviour.times else 1.0
            return tuple(np.frombuffer(b.tobytes(), dtype=b.dtype) for b in buffers)

        self.currently_loaded = True
        return invoker

    def unload(self):
        behaviour.unloads += 1
        self.currently_loaded = False

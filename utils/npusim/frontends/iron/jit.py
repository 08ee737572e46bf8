"""``@iron.jit``: a function that makes a design becomes a function that runs it on the simulated NPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.errors import DesignWarning, UnsupportedError
from npusim.frontends.iron.compilable import NO_FILES, CompilableDesign, config_param_names
from npusim.frontends.iron.markers import parameters_of
from npusim.frontends.iron.tensor import NpuTensor
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.report import Report


@dataclass(frozen=True)
class KernelResult:
    """What a run gives back beside the tensors it wrote: the simulated time and the whole report."""

    report: Report
    trace_config: Any = None

    @property
    def npu_time(self) -> int:
        """Simulated time in nanoseconds."""
        return round(self.report.seconds * 1e9)

    def has_trace(self) -> bool:
        """False: there is no trace of the hardware; the simulated one is ``report.trace``."""
        return False

    def is_success(self) -> bool:
        """True: what fails raises."""
        return True


class CallableDesign:
    """A design to be called with tensors. Each call makes it (or takes it from those made), runs it and fills the outputs.

    CompileTime values are given when it is decorated or at a call, which wins. Returns (self, :class:`KernelResult`).
    """

    def __init__(
        self,
        mlir_generator: Callable[..., Any] | Path | CompilableDesign,
        *,
        compile_kwargs: dict[str, Any] | None = None,
        use_cache: bool = True,
        source_files: list[str | Path] | None = None,
        aiecc_flags: list[str] | None = None,
        compile_flags: list[str] | None = None,
        include_paths: list[str | Path] | None = None,
        object_files: list[str | Path] | None = None,
        trace_config: Any = None,
        full_elf: bool = False,
    ) -> None:
        self.trace_config = trace_config
        self.compilable = (
            mlir_generator
            if isinstance(mlir_generator, CompilableDesign)
            else CompilableDesign(
                mlir_generator,
                use_cache=use_cache,
                compile_kwargs=compile_kwargs,
                compile_flags=compile_flags,
                source_files=source_files,
                include_paths=include_paths,
                aiecc_flags=aiecc_flags,
                object_files=object_files,
                full_elf=full_elf,
            )
        )

    def __call__(self, *runtime_args: Any, **runtime_kwargs: Any) -> tuple[CallableDesign, KernelResult]:
        """Run with the tensors in the order of the signature; CompileTime values by name."""
        from npusim import run

        values, scalars = self._split(runtime_kwargs)
        self._check_call(runtime_args, scalars)
        if self.trace_config is not None:
            values.setdefault("trace_size", self.trace_config.trace_size)
        compilable = self.compilable.specialize(**values) if values else self.compilable
        tensors, scalars = compilable.split_runtime_args(runtime_args, scalars)
        if scalars:
            raise UnsupportedError(f"{compilable.generator_name!r}: run-time scalar arguments {sorted(scalars)}")
        tensors = [t if isinstance(t, NpuTensor) else _as_tensor(t) for t in tensors]
        compilable.validate_tensor_args(tensors)
        machine = compilable.machine()
        report = run.simulate(machine, _arrays(tensors, machine))
        for tensor in tensors:
            tensor.to("npu")
        trace_config = values.get("trace_config", self.trace_config)
        if trace_config is not None:
            trace_config.physical_mlir_path = str(NO_FILES / compilable.generator_name)
        return self, KernelResult(report, trace_config)

    def specialize(self, **overrides: Any) -> CallableDesign:
        """The same design with other configuration or CompileTime values."""
        return CallableDesign(
            self.compilable.specialize(**{k: v for k, v in overrides.items() if self._hands_on(k)}),
            trace_config=overrides.get("trace_config", self.trace_config),
        )

    def as_mlir(self, *runtime_args: Any, **runtime_kwargs: Any) -> str:
        """The design as generic-form MLIR text. Tensor arguments are not looked at and may be None."""
        values, _ = self._split(runtime_kwargs)
        return self.compilable.specialize(**values).generate_mlir()

    def compile(
        self,
        xclbin_path: Path | str | None = None,
        inst_path: Path | str | None = None,
        elf_path: Path | str | None = None,
        full_elf_path: Path | str | None = None,
        pdi_path: Path | str | None = None,
    ) -> tuple[Path, Path | None]:
        """See :meth:`CompilableDesign.compile`."""
        return self.compilable.compile(xclbin_path, inst_path, elf_path, full_elf_path, pdi_path)

    def get_pdi_path(self, device_name: str | None = None) -> None:
        """None: there are no compiled files."""

    def get_pdi_paths(self) -> list[Path]:
        """Empty: there are no compiled files."""
        return []

    def __repr__(self) -> str:
        return f"CallableDesign({self.compilable!r})"

    @property
    def _kernel_cache(self) -> dict[Any, Any]:
        """The designs made so far; programs that time making them clear it."""
        return self.compilable._machines

    def _hands_on(self, name: str) -> bool:
        return name != "trace_config" or name in self.compilable.compile_params

    def _split(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(CompileTime values, the rest) of a call's keyword arguments."""
        names = set(self.compilable.compile_params)
        return {k: v for k, v in kwargs.items() if k in names}, {k: v for k, v in kwargs.items() if k not in names}

    def _check_call(self, args: tuple[Any, ...], scalars: dict[str, Any]) -> None:
        """TypeError for a tensor given by name or too many positional arguments."""
        design = self.compilable
        confused = set(scalars) & set(design.tensor_params)
        if confused:
            raise TypeError(
                f"{design.generator_name!r} received tensor param(s) as keyword arguments: {confused}.\n"
                f"  Params annotated In/Out/InOut must be passed positionally.\n"
                f"  CompileTime[T] params (passed as kwargs): {design.compile_params}."
            )
        tensors, others = len(design.tensor_params), len(design.scalar_params)
        if not isinstance(design.mlir_generator, Path) and len(args) > tensors + others:
            raise TypeError(
                f"{design.generator_name!r} takes at most {tensors + others} positional argument(s) "
                f"(tensor: {tensors}, scalar: {others}) but {len(args)} were given.\n"
                f"  CompileTime[T] parameters {design.compile_params} must be keyword arguments, not positional."
            )


def jit(mlir_generator: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Decorator: the generator as a :class:`CallableDesign`. Keywords are configuration or CompileTime values.

    TypeError for keywords that are neither, for parameters that have a default but no annotation (their value would be
    fixed silently), and for CompileTime parameters that are neither keyword-only nor bound.
    """
    if mlir_generator is None:
        return functools.partial(jit, **kwargs)
    names = config_param_names(CallableDesign)
    config = {k: v for k, v in kwargs.items() if k in names}
    values = {k: v for k, v in kwargs.items() if k not in names}
    if not isinstance(mlir_generator, Path):
        _check_generator(mlir_generator, values, names)
    return CallableDesign(mlir_generator, compile_kwargs=values or None, **config)


def _check_generator(generator: Callable[..., Any], values: dict[str, Any], config: frozenset[str]) -> None:
    signature, compile_time, _, scalars, _ = parameters_of(generator)
    who, parameters = generator.__name__, signature.parameters
    unknown = sorted(set(values) - set(compile_time))
    if unknown:
        raise TypeError(
            f"@iron.jit received keyword argument(s) that do not match any CompileTime[T]-annotated parameter of "
            f"{who!r}: {unknown}.\n  Valid CompileTime[T] params: {list(compile_time)}.\n  Config keys: {sorted(config)}."
        )
    fixed = [name for name in scalars if parameters[name].default is not parameters[name].empty]
    if fixed:
        raise TypeError(
            f"@iron.jit: parameter(s) {fixed!r} of {who!r} have default values but no In / Out / InOut / CompileTime[T] "
            "annotation.  The framework has no runtime-scalar plumbing yet, so the default would be baked into the "
            "compiled kernel and per-call overrides silently ignored.\n  Fix options:\n"
            "    * Use CompileTime[T] = default to keep the default and recompile on per-call change.\n"
            "    * Annotate as In / Out / InOut if it's a tensor."
        )
    positional = [
        name
        for name in compile_time
        if parameters[name].kind is parameters[name].POSITIONAL_OR_KEYWORD
        and name not in values
        and parameters[name].default is parameters[name].empty
    ]
    if positional:
        raise TypeError(
            f"@iron.jit: CompileTime[T] parameter(s) {positional!r} in {who!r} are not keyword-only.\n"
            "Place a bare '*' before your CompileTime[T] parameters."
        )


def _as_tensor(value: Any) -> NpuTensor:
    """A plain contiguous numpy array as a tensor on the same memory; TypeError for anything else."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a design is called with tensors (iron.tensor, iron.zeros, ...), not {type(value).__name__}")
    tensor = NpuTensor((0,), dtype=value.dtype)
    tensor._data = np.ascontiguousarray(value)
    if tensor._data is not value and not np.shares_memory(tensor._data, value):
        raise UnsupportedError("a design called with a numpy array that is not contiguous")
    return tensor


def _arrays(tensors: list[NpuTensor], machine: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors' memory seen as the design sees it: the NPU moves bytes and knows no types.

    Warns of other types of the same width, unless both are integers and the sign alone differs.
    """
    arrays = []
    for tensor, value in zip(tensors, machine.sequence.entry.args):
        wanted = value.type
        assert isinstance(wanted, MemRefType)
        given = np.dtype(tensor.dtype)
        if given != wanted.dtype and given.kind + wanted.dtype.kind not in ("iu", "ui"):
            warnings.warn(
                f"a tensor of {given} is read as {wanted.dtype}, which the design declares",
                DesignWarning,
                stacklevel=3,
            )
        arrays.append(tensor.data.reshape(-1).view(wanted.dtype).reshape(wanted.shape))
    return arrays

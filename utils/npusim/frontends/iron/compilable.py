"""A generator of designs with the values it needs (``CompilableDesign``, ``@iron.compileconfig``).

Nothing is compiled here: "compiling" is to make the design, place it and check every limit. What would leave files for a
real NPU raises UnsupportedError.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from npusim.errors import DesignError, DesignWarning, NpuError, UnsupportedError
from npusim.frontends.iron import current
from npusim.frontends.iron.fingerprint import fingerprint
from npusim.frontends.iron.markers import Parameters, RuntimeTensor, compile_context, parameters_of
from npusim.frontends.iron.outputs import source_of, unwritten
from npusim.frontends.tracing import add_line
from npusim.graph import Design
from npusim.machine import Machine
from npusim.messages import explain

NO_FILES = Path("simulated, no files")
"""Where compiled files would lie; a name under which there are none."""
_KEPT = 64  # placed designs that one generator keeps, oldest dropped first


def config_param_names(cls: Any) -> frozenset[str]:
    """The configuration parameters of a design class: all but the generator and its compile-time values."""
    return frozenset(inspect.signature(cls).parameters) - {"mlir_generator", "compile_kwargs"}


class CompilableDesign:
    """A generator (a function, or a file of generic-form MLIR as generated) and its CompileTime values.

    The other arguments configure the real compiler. They are kept and handed on, and change nothing here.
    """

    def __init__(
        self,
        mlir_generator: Callable[..., Any] | Path,
        *,
        use_cache: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        compile_flags: list[str] | None = None,
        source_files: list[str | Path] | None = None,
        include_paths: list[str | Path] | None = None,
        aiecc_flags: list[str] | None = None,
        object_files: list[str | Path] | None = None,
        full_elf: bool = False,
    ) -> None:
        self.mlir_generator = mlir_generator
        self.use_cache = use_cache
        self.full_elf = full_elf
        self.compile_kwargs: Mapping[str, Any] = MappingProxyType(dict(compile_kwargs or {}))
        self.compile_flags = tuple(compile_flags or ())
        self.source_files = tuple(Path(f) for f in source_files or ())
        self.include_paths = tuple(Path(p) for p in include_paths or ())
        self.aiecc_flags = tuple(aiecc_flags or ())
        self.object_files = tuple(Path(f) for f in object_files or ())
        empty = Parameters(inspect.Signature(), (), (), ())
        parameters = empty if isinstance(mlir_generator, Path) else parameters_of(mlir_generator)
        self._signature = parameters.signature
        self.compile_params = list(parameters.compile_time)
        self.tensor_params = list(parameters.tensors)
        self._outputs = parameters.outputs
        self.scalar_params = list(parameters.scalars)
        self._machines: dict[Hashable, Machine] = {}

    @property
    def generator_name(self) -> str:
        """The function's name or the file's path."""
        return getattr(self.mlir_generator, "__name__", str(self.mlir_generator))

    def specialize(self, **overrides: Any) -> CompilableDesign:
        """The same design with other configuration or CompileTime values. Designs already made are shared."""
        names = config_param_names(CompilableDesign)
        config: dict[str, Any] = {name: getattr(self, name) for name in names}
        config.update({name: value for name, value in overrides.items() if name in names})
        values = {name: value for name, value in overrides.items() if name not in names}
        other = CompilableDesign(self.mlir_generator, compile_kwargs={**self.compile_kwargs, **values}, **config)
        other._machines = self._machines
        return other

    def design(self) -> Design:
        """The design for the current device, made anew. TypeError if CompileTime values are missing or unknown."""
        if isinstance(self.mlir_generator, Path):
            from npusim.mlir import read_high

            return read_high(self.mlir_generator.read_text())
        from npusim.frontends.iron.kernel_library import common as kernel_library

        self._check_values()
        current.ensure_current_device()
        current.take_resolved()
        kernel_library.forget()
        tensors = {name: RuntimeTensor(name) for name in self.tensor_params}
        try:
            with compile_context(**self.compile_kwargs):
                made = self.mlir_generator(**tensors, **self.compile_kwargs)
        except NpuError as error:
            add_line(error)
            raise
        finally:
            kernel_library.forget()
        made = current.take_resolved() if made is None else made
        made = getattr(made, "design", made)  # resolve_program gives a module
        if not isinstance(made, Design):
            raise DesignError(f"{self.generator_name!r} made no design: return Program(...).resolve_program()")
        return made

    def machine(self) -> Machine:
        """The design placed on the current device; kept until something that the generator depends on changes."""
        if not self.use_cache or isinstance(self.mlir_generator, Path):
            return self._placed()
        key = (_device_key(current.ensure_current_device()), self._key())
        if key not in self._machines:
            while len(self._machines) >= _KEPT:
                del self._machines[next(iter(self._machines))]
            self._machines[key] = self._placed()
        return self._machines[key]

    def _placed(self) -> Machine:
        from npusim.place import place

        machine = place(self.design())
        for name in unwritten(machine, self.tensor_params, self._outputs):
            text = explain(
                f"{self.generator_name!r} never writes its output {name!r}: no drain in the host sequence moves "
                "anything into it.",
                hint=f"drain a fifo into it, or annotate {name!r} as In. The real tools accept this silently.",
                loc=source_of(self.mlir_generator),
            )
            machine.warnings.append(text)
            warnings.warn(text, DesignWarning, stacklevel=4)
        return machine

    def generate_mlir(self) -> str:
        """The design as generic-form MLIR text (the real package returns a module object that prints so)."""
        from npusim.mlir import print_design

        return print_design(self.design())

    def split_runtime_args(
        self, runtime_args: tuple[Any, ...], runtime_kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """(tensors, scalars by name) of a call, positional arguments taken in the order of the signature."""
        from npusim.frontends.iron.kernel import Kernel

        values = iter(arg for arg in runtime_args if not isinstance(arg, Kernel))
        if isinstance(self.mlir_generator, Path):
            return list(values), runtime_kwargs
        tensors: list[Any] = []
        scalars = dict(runtime_kwargs)
        for name in self._signature.parameters:
            if name in self.compile_kwargs:
                continue
            if name not in scalars:
                value = next(values, self)
                if value is self:
                    continue
                scalars[name] = value
            if name in self.tensor_params:
                tensors.append(scalars.pop(name))
        return tensors, scalars

    def validate_tensor_args(self, tensor_args: list[Any]) -> None:
        """DesignError unless the tensors are those that the host sequence moves: as many, as long, elements as wide."""
        from npusim.types import MemRefType

        sequence = self.machine().sequence
        wanted = [value.type for value in sequence.entry.args] if sequence is not None else []
        if len(wanted) != len(tensor_args):
            raise DesignError(
                f"{self.generator_name!r} was called with {len(tensor_args)} tensors, but its host sequence has "
                f"{len(wanted)} arguments"
            )
        for i, (tensor, kind) in enumerate(zip(tensor_args, wanted)):
            name = self.tensor_params[i] if i < len(self.tensor_params) else f"arg[{i}]"
            if not isinstance(kind, MemRefType):
                raise UnsupportedError(f"{self.generator_name!r}: run-time scalar {name!r} of type {kind} in a call")
            _check_tensor(name, tensor, kind, self.compile_kwargs)

    def compile(
        self,
        xclbin_path: Path | str | None = None,
        inst_path: Path | str | None = None,
        elf_path: Path | str | None = None,
        full_elf_path: Path | str | None = None,
        pdi_path: Path | str | None = None,
    ) -> tuple[Path, Path | None]:
        """Trace, place and check the design, and keep it, so that calls find it made.

        Gives two names where the real package gives the paths of xclbin and instructions; nothing lies there.
        UnsupportedError if files are asked for.
        """
        self.machine()
        asked = [str(p) for p in (xclbin_path, inst_path, elf_path, full_elf_path, pdi_path) if p is not None]
        if asked:
            raise UnsupportedError(
                f"CompilableDesign.compile of {self.generator_name!r} into {', '.join(asked)}: the simulated NPU "
                "makes no "
                "xclbin; the design was traced, placed and checked, and can be called"
            )
        name = NO_FILES / self.generator_name
        return (name, None) if self.full_elf else (name, name)

    def get_artifacts(self) -> None:
        """None: there are no compiled files."""

    def get_pdi_path(self, device_name: str | None = None) -> None:
        """None: there are no compiled files."""

    def get_pdi_paths(self) -> list[Path]:
        """Empty: there are no compiled files."""
        return []

    def to_json(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("CompilableDesign.to_json is not served by the simulated NPU")

    @classmethod
    def from_json(cls, json_str: str, generator: Callable[..., Any] | None = None) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("CompilableDesign.from_json is not served by the simulated NPU")

    @property
    def recipe_hash(self) -> str:
        """Identifies generator, CompileTime values and flags within this process."""
        return f"{hash((self._key(), self.aiecc_flags, self.compile_flags, self.full_elf)):x}"

    @property
    def artifact_hash(self) -> NoReturn:
        """Not served: raises UnsupportedError."""
        raise UnsupportedError("CompilableDesign.artifact_hash is not served by the simulated NPU: nothing is compiled")

    def __hash__(self) -> int:
        return hash((self._key(), self.aiecc_flags, self.compile_flags, self.full_elf))

    def __repr__(self) -> str:
        return f"CompilableDesign(generator={self.generator_name!r}, compile_kwargs={self.compile_kwargs!r})"

    def _key(self) -> Hashable:
        values = tuple((name, fingerprint(self.compile_kwargs[name])) for name in sorted(self.compile_kwargs))
        return fingerprint(self.mlir_generator), values

    def _check_values(self) -> None:
        given, who = self.compile_kwargs, f"CompilableDesign for {self.generator_name!r}"
        confused = set(given) & set(self.tensor_params)
        if confused:
            raise TypeError(
                f"{who}: compile_kwargs contains name(s) annotated as runtime tensors (In/Out/InOut), not "
                "CompileTime[T] "
                f"parameters: {confused}.\n  Tensor params must be supplied at call time, not compile time.\n"
                f"  CompileTime[T] params are: {self.compile_params}."
            )
        unknown = set(given) - {*self.compile_params, *self.scalar_params}
        if unknown:
            raise TypeError(
                f"{who}: compile_kwargs contains key(s) not in the generator signature: {unknown}.\n"
                f"  Valid CompileTime[T] params are: {self.compile_params}."
            )
        chosen = [self._signature.parameters[name] for name in self.compile_params]
        try:
            inspect.Signature(chosen).bind(**given)
        except TypeError as error:
            raise TypeError(f"{who}: compile_kwargs do not match CompileTime[T] parameters — {error}") from error


def compileconfig(
    mlir_generator: Callable[..., Any] | None = None,
    *,
    use_cache: bool = True,
    compile_flags: list[str] | None = None,
    source_files: list[str | Path] | None = None,
    include_paths: list[str | Path] | None = None,
    aiecc_flags: list[str] | None = None,
    object_files: list[str | Path] | None = None,
) -> Any:
    """Decorator that makes a :class:`CompilableDesign` of a generator, with or without configuration."""
    config: dict[str, Any] = {
        "use_cache": use_cache,
        "compile_flags": compile_flags,
        "source_files": source_files,
        "include_paths": include_paths,
        "aiecc_flags": aiecc_flags,
        "object_files": object_files,
    }
    if mlir_generator is None:
        return functools.partial(compileconfig, **config)
    return CompilableDesign(mlir_generator, **config)


def _device_key(device: Any) -> Hashable:
    return type(device).__qualname__, getattr(device, "cols", None)


def _check_tensor(name: str, tensor: Any, kind: Any, values: Mapping[str, Any]) -> None:
    """The real runtime compares the number of elements only; other widths would be read beyond the tensor's end."""
    count, width = tensor.numel(), tensor.element_size
    if count != kind.size:
        raise DesignError(
            f"Tensor argument {name!r} has {count} elements but the kernel was compiled for {kind.size} elements.\n"
            f"CompileTime[T] parameters used at compile time: {dict(values)!r}"
        )
    if width != kind.dtype.itemsize:
        raise DesignError(
            f"Tensor argument {name!r} is of {tensor.dtype}, {width} bytes an element, but the design moves "
            f"{kind.element}, {kind.dtype.itemsize} bytes an element"
        )

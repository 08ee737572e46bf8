"""The command lines of designs: ``aie.utils.hostruntime.argparse`` and ``aie.utils.hostruntime.cli``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

from npusim.errors import DesignError
from npusim.frontends.iron import current

DEFAULT_DEV_CHOICES: tuple[str, ...] = ("npu", "npu2")


def add_compile_args(
    parser: argparse.ArgumentParser,
    *,
    with_dev: bool = True,
    dev_choices: tuple[str, ...] = DEFAULT_DEV_CHOICES,
    default_dev: str | None = None,
    short_dev: str | None = "-d",
    with_elf: bool = False,
    with_full_elf: bool = False,
    with_pdi: bool = False,
    with_emit_mlir: bool = False,
) -> None:
    """Add ``--dev`` and the options that name compiled files (which the simulated NPU refuses when used)."""
    if with_dev:
        names = ("--dev",) if short_dev is None else (short_dev, "--dev")
        shown = "the simulated NPU" if default_dev is None else "%(default)s"
        parser.add_argument(
            *names, type=str, choices=list(dev_choices), default=default_dev, help=f"device family (default: {shown})"
        )
    if with_emit_mlir:
        parser.add_argument("--emit-mlir", action="store_true", help="print the design as MLIR (needs --dev)")
    files = ["xclbin", "insts", *["elf"] * with_elf, *["full-elf"] * with_full_elf, *["pdi"] * with_pdi]
    for name in files:
        parser.add_argument(f"--{name}-path", type=str, default=None, help=f"compile only: where to write the {name}")


def add_benchmark_args(parser: argparse.ArgumentParser, *, default_warmup: int = 2, default_iters: int = 5) -> None:
    """Add ``-w/--warmup`` and ``-i/--iters``."""
    parser.add_argument(
        "-w", "--warmup", type=int, default=default_warmup, help="runs before timing starts (default: %(default)s)"
    )
    parser.add_argument("-i", "--iters", type=int, default=default_iters, help="timed runs (default: %(default)s)")


def add_trace_arg(parser: argparse.ArgumentParser, *, with_short: bool = True, default: int = 0) -> None:
    """Add ``--trace_size`` (and ``-t``). The simulated NPU always traces; the hardware's trace is not made."""
    names = ("-t", "--trace_size") if with_short else ("--trace_size",)
    parser.add_argument(*names, type=int, default=default, help="bytes of hardware trace (default: %(default)s, none)")


def add_runtime_args(
    parser: argparse.ArgumentParser, *, with_io_sizes: bool = False, with_benchmark: bool = False
) -> None:
    """Add the options of programs that load compiled files."""
    parser.add_argument("--xclbin", type=str, required=True, help="the compiled xclbin to load")
    parser.add_argument("--instr", type=str, default="instr.txt", help="the NPU's instructions (default: %(default)s)")
    parser.add_argument(
        "-k", "--kernel", type=str, default="MLIR_AIE", help="name in the xclbin (default: %(default)s)"
    )
    parser.add_argument("-v", "--verbosity", type=int, default=0, help="how much to print (default: %(default)s)")
    parser.add_argument(
        "--verify", action=argparse.BooleanOptionalAction, default=True, help="compare with the reference"
    )
    add_trace_arg(parser)
    parser.add_argument("--trace-file", type=str, default="trace.txt", help="where the trace goes")
    parser.add_argument("--ddr-id", type=int, default=4, help="buffer of the trace, -1 for after the last tensor")
    parser.add_argument("--enable-ctrl-pkts", action="store_true", help="enable control packets")
    if with_io_sizes:
        for name in ("in1", "in2", "out"):
            parser.add_argument(f"--{name}-size", type=int, default=0, help=f"bytes of buffer {name}")
    if with_benchmark:
        add_benchmark_args(parser)


def device_from_args(args: Any, *, dev_attr: str = "dev", n_cols: int | str | None = "auto") -> Any:
    """The IRON device that parsed options name, None if they leave it open.

    ``n_cols``: columns, None for all, ``"auto"`` for what ``args.n_cols`` says or else one.
    """
    from npusim.frontends.iron.device import from_name

    name = getattr(args, dev_attr)
    if name is None:
        return None
    if n_cols == "auto":
        chosen = getattr(args, "n_cols", None)
        return from_name(name, n_cols=1 if chosen is None else chosen)
    if isinstance(n_cols, str):
        raise DesignError(f"n_cols must be an int, None, or 'auto'; got {n_cols!r}")
    return from_name(name, n_cols=n_cols)


def run_design_cli(
    design: Any,
    opts: Any,
    *,
    compile_kwargs: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]],
    run_and_verify: Callable[[Any], None] | None = None,
    device: Any = None,
    emit_mlir: Callable[[Any], None] | None = None,
    validate: Callable[[Any], None] | None = None,
) -> None:
    """Do what the options ask: choose the device, ``validate``, then print MLIR, compile (not served) or run.

    SystemExit for options that do not go together, as in the real package.
    """
    _check_paths(opts)
    current.set_current_device(_device(opts, device))
    if validate is not None:
        validate(opts)
    values = compile_kwargs(opts) if callable(compile_kwargs) else compile_kwargs
    if getattr(opts, "emit_mlir", False):
        if emit_mlir is not None:
            emit_mlir(opts)
        else:
            print(design.specialize(**values).as_mlir())
    elif getattr(opts, "xclbin_path", None) is not None or getattr(opts, "full_elf_path", None) is not None:
        design.specialize(**values).compile(
            xclbin_path=getattr(opts, "xclbin_path", None),
            inst_path=getattr(opts, "insts_path", None),
            full_elf_path=getattr(opts, "full_elf_path", None),
        )
    elif run_and_verify is None:
        sys.exit(
            "run_design_cli: no run_and_verify callback was provided; this design can only be compiled or printed."
        )
    else:
        run_and_verify(opts)


def _check_paths(opts: Any) -> None:
    xclbin = getattr(opts, "xclbin_path", None)
    if xclbin is not None and not getattr(opts, "insts_path", None):
        sys.exit("--xclbin-path requires --insts-path (must be set together)")
    if xclbin is not None and getattr(opts, "full_elf_path", None) is not None:
        sys.exit("--full-elf-path and --xclbin-path/--insts-path are mutually exclusive")


def _device(opts: Any, device: Any) -> Any:
    """The device of ``--dev``, else the one given, else the simulated NPU's family."""
    from npusim.frontends.iron.device import from_name

    fixed = device is not None and not callable(device)
    if getattr(opts, "dev", None) is None:
        if fixed:
            return device
        if getattr(opts, "emit_mlir", False):
            sys.exit("run_design_cli: --emit-mlir requires an explicit target; pass --dev.")
        if not hasattr(opts, "dev") and device is None:
            raise DesignError("run_design_cli: device=None requires opts to expose a 'dev' attribute")
        if hasattr(opts, "dev"):
            opts.dev = "npu" if type(current.get_current_device()).__name__.startswith("NPU1") else "npu2"
    chosen = device if fixed else from_name(opts.dev) if device is None else device(opts)
    if chosen is None:
        raise DesignError("run_design_cli: device selector returned None")
    return chosen

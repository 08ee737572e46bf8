"""@iron.jit: what a generator sees, what calls are refused, when a design is made anew."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from npusim import run
from npusim.errors import DesignError, DesignWarning, UnsupportedError
from npusim.frontends.iron import current
from npusim.frontends.iron import tensor_factory as iron
from npusim.frontends.iron.compilable import CompilableDesign, compileconfig
from npusim.frontends.iron.controlflow import range_
from npusim.frontends.iron.device import NPU1, NPU2
from npusim.frontends.iron.host_utils import TraceConfig
from npusim.frontends.iron.jit import CallableDesign, jit
from npusim.frontends.iron.markers import CompileTime, In, Out, RuntimeTensorError, compile_context, get_compile_arg
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.worker import Worker


@pytest.fixture(autouse=True)
def device():
    current.set_current_device(NPU2())
    yield
    current.set_current_device(None)


def vector(n, dtype=np.int32):
    return np.ndarray[(n,), np.dtype[dtype]]


def add_design(n, k):
    """y = x + k for n int32 on one core."""
    x, y = ObjectFifo(vector(n), name="x"), ObjectFifo(vector(n), name="y")

    def core(source, target):
        a, b = source.acquire(1), target.acquire(1)
        for i in range_(n):
            b[i] = a[i] + k
        source.release(1)
        target.release(1)

    def sequence(a, b, fill, drain):
        fill.fill(a)
        drain.drain(b, wait=True)

    runtime = Runtime(sequence, [vector(n), vector(n), x.prod(), y.cons()])
    return Program(current.get_current_device(), runtime, [Worker(core, [x.cons(), y.prod()])]).resolve_program()


@jit
def add(x: In, y: Out, *, N: CompileTime[int], K: CompileTime[int] = 4):
    return add_design(N, K)


def run_add(design, n=16, **values):
    x, y = iron.arange(n, dtype=np.int32), iron.zeros(n, dtype=np.int32)
    answer = design(x, y, **values)
    return (y.numpy() - x.numpy()).tolist(), answer


def test_a_call_fills_the_outputs_and_says_how_long_it_took():
    added, (design, result) = run_add(add, N=16)
    assert added == [4] * 16
    assert design is add
    assert result.is_success()
    assert result.npu_time == round(result.report.seconds * 1e9) > 0


def test_values_at_the_call_win():
    bound = jit(K=7, N=16)(add.compilable.mlir_generator)
    assert run_add(bound)[0] == [7] * 16
    assert run_add(bound, K=8)[0] == [8] * 16
    assert run_add(bound)[0] == [7] * 16
    assert run_add(bound.specialize(K=9))[0] == [9] * 16
    assert repr(add.specialize(K=5)) == (
        "CallableDesign(CompilableDesign(generator='add', compile_kwargs=mappingproxy({'K': 5})))"
    )


def test_listeners_hear_of_a_run():
    heard = []
    run.listeners.append(heard.append)
    try:
        _, (_, result) = run_add(add, N=16)
    finally:
        run.listeners.remove(heard.append)
    assert heard == [result.report]


def test_as_mlir_makes_the_design_without_tensors():
    text = add.as_mlir(None, None, N=8, K=2)
    assert "aie.device" in text
    assert "memref<8xi32>" in text
    assert add.as_mlir(N=8, K=2).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "look", [lambda x: x.shape, lambda x: x[0], lambda x: setattr(x, "dtype", 1), lambda x: getattr(x, "a", 0)]
)
def test_a_tensor_cannot_be_looked_at_while_the_design_is_made(look):
    @jit
    def design(x: In, y: Out):
        look(x)

    with pytest.raises(RuntimeTensorError, match="'x' is a runtime tensor"):
        design.as_mlir(None, None)


def test_the_recorded_text_about_tensors():
    @jit
    def g(x: In, y: Out):
        return x.shape

    with pytest.raises(RuntimeError) as caught:
        g.as_mlir()
    text, line = str(caught.value).split("\n")
    assert line == f"(test_jit.py:{g.compilable.mlir_generator.__code__.co_firstlineno + 2})"
    assert text == (
        "Generator parameter 'x' is a runtime tensor (In/Out/InOut) and is not available at compile time: .shape. "
        "Use CompileTime[T] parameters for shape/dtype information instead."
    )


def test_recorded_refusals_at_decoration():
    """e57, e58 of the recorded errors, and a compile-time parameter that could be given by position."""

    def f(a: In, b: Out, *, N: CompileTime[int]):
        pass

    with pytest.raises(TypeError) as caught:
        jit(NN=4)(f)
    assert str(caught.value) == (
        "@iron.jit received keyword argument(s) that do not match any CompileTime[T]-annotated parameter of 'f': ['NN'].\n"
        "  Valid CompileTime[T] params: ['N'].\n"
        "  Config keys: ['aiecc_flags', 'compile_flags', 'full_elf', 'include_paths', 'object_files', 'source_files', "
        "'trace_config', 'use_cache']."
    )

    def g(a: In, b: Out, k=3):
        pass

    with pytest.raises(TypeError, match=r"@iron\.jit: parameter\(s\) \['k'\] of 'g' have default values but no In"):
        jit(g)

    def h(a: In, N: CompileTime[int]):
        pass

    with pytest.raises(TypeError, match="not keyword-only"):
        jit(h)
    assert isinstance(jit(N=3)(h), CallableDesign)


def test_recorded_refusal_of_a_missing_value():
    """e59 of the recorded errors."""
    with pytest.raises(TypeError) as caught:
        add.as_mlir(None, None)
    assert str(caught.value) == (
        "CompilableDesign for 'add': compile_kwargs do not match CompileTime[T] parameters — missing a required argument: 'N'"
    )


def test_refused_calls():
    x, y = iron.zeros(16, dtype=np.int32), iron.zeros(16, dtype=np.int32)
    with pytest.raises(TypeError, match="must be passed positionally"):
        add(x, y=y, N=16)
    with pytest.raises(TypeError, match="at most 2 positional"):
        add(x, y, 16)
    with pytest.raises(DesignError, match="called with 1 tensors, but its host sequence has 2"):
        add(x, N=16)
    with pytest.raises(DesignError, match="'x' has 16 elements but the kernel was compiled for 32"):
        add(x, y, N=32)
    with pytest.raises(DesignError, match="8 bytes an element"):
        add(iron.zeros(16, dtype=np.int64), y, N=16)
    with pytest.raises(UnsupportedError, match="run-time scalar"):
        add(x, y, N=16, other=3)
    with pytest.raises(TypeError, match="not list"):
        add([1], y, N=16)


def test_the_sign_of_integers_is_the_program_s_affair():
    x, y = iron.full(16, 250, dtype=np.uint32), iron.zeros(16, dtype=np.uint32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(x, y, N=16, K=-251)
    assert y.numpy().tolist() == [2**32 - 1] * 16


def test_bytes_are_reinterpreted_with_a_warning():
    x, y = iron.full(16, 1.0, dtype=np.float32), iron.zeros(16, dtype=np.int32)
    with pytest.warns(DesignWarning, match="float32 is read as int32"):
        add(x, y, N=16, K=0)
    assert set(y.numpy().tolist()) == {0x3F800000}


def test_plain_arrays_are_written_in_place():
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    add(x, y, N=16)
    assert np.array_equal(y, x + 4)


def machine(design):
    return run_add(design, N=16)[1][1].report.machine


def test_a_design_is_made_once_for_the_same_values():
    captured = [3]

    @jit
    def design(x: In, y: Out, *, N: CompileTime[int]):
        return add_design(N, captured[0])

    first = machine(design)
    assert machine(design) is first
    captured[0] = 5
    assert run_add(design, N=16)[0] == [5] * 16
    captured[0] = 3
    assert machine(design) is first
    uncached = design.specialize(use_cache=False)
    assert machine(uncached) is not machine(uncached)


def test_closures_over_different_values_do_not_share_designs():
    """The mistake of mlir-aie pull request 2948: same source, other captured value, stale kernel."""

    def make(k):
        @jit
        def design(x: In, y: Out, *, N: CompileTime[int]):
            return add_design(N, k)

        return design

    one, two = make(1), make(2)
    assert run_add(one, N=16)[0] == [1] * 16
    assert run_add(two, N=16)[0] == [2] * 16


def test_another_device_makes_another_design():
    on_npu2 = run_add(add, N=16)[1][1].report.machine.device.name
    current.set_current_device(NPU1())
    on_npu1 = run_add(add, N=16)[1][1].report.machine.device.name
    assert (on_npu1, on_npu2) == ("npu1", "npu2")


def test_a_generator_may_leave_its_design_unreturned():
    @jit
    def design(x: In, y: Out, *, N: CompileTime[int]):
        add_design(N, 6)

    assert run_add(design, N=16)[0] == [6] * 16

    @jit
    def nothing(x: In):
        pass

    with pytest.raises(DesignError, match="made no design"):
        nothing.as_mlir()


def test_compile_arguments_are_readable_inside():
    seen = []

    @jit
    def design(x: In, y: Out, *, N: CompileTime[int]):
        seen.append((get_compile_arg("N"), get_compile_arg("missing", 1)))
        return add_design(N, 0)

    design.as_mlir(N=16)
    assert seen == [(16, 1)]
    with compile_context(a=1), compile_context(b=2):
        assert (get_compile_arg("a"), get_compile_arg("b")) == (1, 2)
    assert get_compile_arg("a") is None


def test_compileconfig_and_configuration():
    @compileconfig(compile_flags=["-O3"])
    def design(x: In, y: Out, *, N: CompileTime[int]):
        return add_design(N, 1)

    assert isinstance(design, CompilableDesign)
    assert design.compile_flags == ("-O3",)
    assert design.specialize(N=16, full_elf=True).full_elf
    assert run_add(CallableDesign(design), N=16)[0] == [1] * 16
    assert hash(design.specialize(N=16)) == hash(design.specialize(N=16)) != hash(design.specialize(N=17))


def test_nothing_is_compiled():
    with pytest.raises(UnsupportedError, match="makes no xclbin"):
        add.specialize(N=16).compile("a.xclbin", "b.bin")
    assert add.get_pdi_path() is None
    assert add.get_pdi_paths() == []


def test_compiling_ahead_checks_the_design_and_keeps_it():
    design = jit(add.compilable.mlir_generator)
    paths = design.specialize(N=16).compile()
    assert not any(path.exists() for path in paths)
    assert "simulated" in str(paths[0])
    assert len(design._kernel_cache) == 1
    run_add(design, N=16)
    assert len(design._kernel_cache) == 1
    with pytest.raises(TypeError, match="missing a required argument: 'N'"):
        design.compile()


def test_a_hardware_trace_is_refused_where_it_is_read():
    @jit
    def traced(x: In, y: Out, *, trace_config: CompileTime[TraceConfig]):
        return add_design(16, 1)

    config = TraceConfig(trace_size=8192)
    assert run_add(traced, trace_config=config)[0] == [1] * 16
    with pytest.raises(UnsupportedError, match="makes no hardware trace"):
        config.trace_to_json(config.physical_mlir_path, "t.json")


def test_optional_and_textual_annotations():
    space = {"jit": jit, "In": In, "Out": Out, "CompileTime": CompileTime, "add_design": add_design}
    exec("def f(x: 'In', y: 'Out', *, N: 'CompileTime[int]' = None):\n    return add_design(N or 16, 2)", space)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_add(jit(space["f"]))[0] == [2] * 16

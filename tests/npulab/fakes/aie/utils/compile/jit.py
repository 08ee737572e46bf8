"""A stand-in: "compiling" writes the two files."""

from types import SimpleNamespace

behaviour = SimpleNamespace(compiled=[], error=None)


class CompilableDesign:
    def __init__(self, mlir_generator, *, compile_kwargs=None):
        self.mlir_generator, self.compile_kwargs = mlir_generator, dict(compile_kwargs or {})
        self.tensor_params = [n for n in getattr(mlir_generator, "__annotations__", {}) if n != "return"]

    def specialize(self, **overrides):
        return CompilableDesign(self.mlir_generator, compile_kwargs={**self.compile_kwargs, **overrides})

    def generate_mlir(self):
        from aie.iron import ExternalFunction

        ExternalFunction._instances.clear()
        return self.mlir_generator(**self.compile_kwargs)

    def compile(self, xclbin_path=None, inst_path=None):
        behaviour.compiled.append(xclbin_path)
        if behaviour.error is not None:
            raise behaviour.error
        xclbin_path.write_text("xclbin")
        inst_path.write_text("insts")
        return xclbin_path, inst_path

"""A stand-in: where the headers of the real package would lie."""


def cxx_header_path():
    return "/opt/mlir_aie/include"

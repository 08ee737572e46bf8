"""A stand-in for a binding that was built for another Python."""

raise ImportError("libxrt_coreutil.so.2: cannot open shared object file")

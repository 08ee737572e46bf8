"""A stand-in: devices are their names."""


def from_name(name, *, n_cols=1):
    return f"{name}/{n_cols}"

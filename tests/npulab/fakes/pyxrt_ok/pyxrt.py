"""A stand-in for XRT's binding on a machine with a Strix NPU."""


class xrt_info_device:
    name = "name"


class device:
    def __init__(self, index):
        assert index == 0

    def get_info(self, what):
        return "NPU Strix"

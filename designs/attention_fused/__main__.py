"""``python -m designs.attention_fused``: see designs.attention.command."""

import sys

from designs.attention.command import main

if __name__ == "__main__":
    sys.exit(main("fused"))

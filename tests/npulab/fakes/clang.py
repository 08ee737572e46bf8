"""A stand-in for Peano's clang++: notes its command line, puts quoted includes in place, and "compiles" by copying.

Beside the folder ``bin`` that it lies in: ``log`` gets a line for each call; ``refuse``, if it exists, holds what it says on
stderr before it fails; ``silent``, if it exists, makes it write nothing.
"""

import json
import re
import sys
from pathlib import Path

home, arguments = Path(__file__).parents[1], sys.argv[1:]


def read(file):
    return re.sub(r'#include "(.+)"', lambda found: read(file.parent / found[1]), file.read_text())


with (home / "log").open("a") as log:
    log.write(json.dumps({"arguments": arguments, "folder": str(Path.cwd())}) + "\n")
if (home / "refuse").exists() and "-c" in arguments:
    sys.exit((home / "refuse").read_text())
text = read(Path(arguments[arguments.index("-c" if "-c" in arguments else "-P") + 1]))
if "-E" in arguments:
    print(text)
elif not (home / "silent").exists():
    Path(arguments[arguments.index("-o") + 1]).write_text(text)

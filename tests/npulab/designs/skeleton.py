"""An exercise that nobody has begun."""

import aie.iron as iron
from aie.iron import In, Out


@iron.jit
def skeleton(x: In, y: Out): ...

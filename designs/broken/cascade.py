"""Two workers, one above the other; the lower one hands its sum up."""

from aie.iron import CascadeFlow, ObjectFifo, Worker
from aie.iron.device import Tile

from designs.broken.parts import copying, program, vector

N = 64


def build(device):
    a, b, p, q = (ObjectFifo(vector(N), name=name) for name in "abpq")
    lower = Worker(copying(N), [a.cons(), p.prod()], tile=Tile(0, 2))
    upper = Worker(copying(N), [b.cons(), q.prod()], tile=Tile(0, 3))
    CascadeFlow(lower, upper)

    def sequence(x, y, pa, pb, cp, cq):
        pa.fill(x)
        pb.fill(x)
        cp.drain(y, wait=True)
        cq.drain(y, wait=True)

    return program(device, sequence, [vector(N)] * 2, [a.prod(), b.prod(), p.cons(), q.cons()], [lower, upper])

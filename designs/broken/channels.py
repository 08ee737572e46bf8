"""d = a + b + c, with a fifo for each of them."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import program, range_, vector

N = 64


def build(device):
    a, b, c, d = (ObjectFifo(vector(N), name=name) for name in "abcd")

    def add(*fifos):
        p, q, r, s = (fifo.acquire(1) for fifo in fifos)
        for i in range_(N):
            s[i] = p[i] + q[i] + r[i]
        for fifo in fifos:
            fifo.release(1)

    worker = Worker(add, [a.cons(), b.cons(), c.cons(), d.prod()])

    def sequence(p, q, r, s, pa, pb, pc, cd):
        for end, array in ((pa, p), (pb, q), (pc, r)):
            end.fill(array)
        cd.drain(s, wait=True)

    return program(device, sequence, [vector(N)] * 4, [a.prod(), b.prod(), c.prod(), d.cons()], [worker])

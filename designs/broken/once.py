"""y = w * x for four objects of x and one of w, the weights."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import program, range_, vector

N, OBJECTS = 64, 4


def build(device):
    x, w, y = (ObjectFifo(vector(N), name=name) for name in "xwy")

    def scale(source, weights, target):
        a, k, b = source.acquire(1), weights.acquire(1), target.acquire(1)
        for i in range_(N):
            b[i] = a[i] * k[i]
        source.release(1)
        weights.release(1)
        target.release(1)

    worker = Worker(scale, [x.cons(), w.cons(), y.prod()])

    def sequence(a, k, b, px, pw, cy):
        px.fill(a)
        pw.fill(k)
        cy.drain(b, wait=True)

    arrays = [vector(N * OBJECTS), vector(N), vector(N * OBJECTS)]
    return program(device, sequence, arrays, [x.prod(), w.prod(), y.cons()], [worker])

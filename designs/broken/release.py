"""Double each of four objects."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import program, range_, vector

N, OBJECTS = 64, 4


def build(device):
    x, y = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y")

    def double(source, target):
        a, b = source.acquire(1), target.acquire(1)
        for i in range_(N):
            b[i] = 2 * a[i]
        source.release(1)

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    whole = [vector(N * OBJECTS)] * 2
    return program(device, sequence, whole, [x.prod(), y.cons()], [Worker(double, [x.cons(), y.prod()])])

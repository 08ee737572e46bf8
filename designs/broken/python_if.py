"""y = max(x, 0), with a condition on each element."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import program, range_, vector

N = 64


def build(device):
    x, y = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y")

    def relu(source, target):
        a, b = source.acquire(1), target.acquire(1)
        for i in range_(N):
            if a[i] > 0:
                b[i] = a[i]
            else:
                b[i] = 0
        source.release(1)
        target.release(1)

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    return program(device, sequence, [vector(N)] * 2, [x.prod(), y.cons()], [Worker(relu, [x.cons(), y.prod()])])

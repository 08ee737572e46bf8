"""Copy a vector of 1000 elements in objects of 64."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import copying, program, vector

N, LENGTH = 64, 1000


def build(device):
    x, y = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y")
    worker = Worker(copying(N), [x.cons(), y.prod()])

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    return program(device, sequence, [vector(LENGTH)] * 2, [x.prod(), y.cons()], [worker])

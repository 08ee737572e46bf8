"""Copy objects of 20 KiB through one compute tile."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import copying, program, vector

N = 5120


def build(device):
    x, y = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y")
    worker = Worker(copying(N), [x.cons(), y.prod()])

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    return program(device, sequence, [vector(N)] * 2, [x.prod(), y.cons()], [worker])

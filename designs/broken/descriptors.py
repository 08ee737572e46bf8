"""Feed a long vector object by object, in a loop."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import copying, program, vector

N, OBJECTS = 64, 20


def build(device):
    x, y = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y")
    worker = Worker(copying(N), [x.cons(), y.prod()])

    def sequence(a, b, px, cy):
        for i in range(OBJECTS):
            px.fill(a, offset=i * N, sizes=[1, 1, 1, N], strides=[0, 0, 0, 1])
        cy.drain(b, wait=True)

    return program(device, sequence, [vector(N * OBJECTS)] * 2, [x.prod(), y.cons()], [worker])

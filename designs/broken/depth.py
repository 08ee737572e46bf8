"""Subtract from each object of x the mean of four: one worker makes the means, the other one subtracts."""

from aie.iron import ObjectFifo, Worker

from designs.broken.parts import program, range_, vector

N, GROUP = 64, 4


def build(device):
    x, y, means = ObjectFifo(vector(N), name="x"), ObjectFifo(vector(N), name="y"), ObjectFifo(vector(1), name="means")

    def mean(source, target):
        four, m = source.acquire(GROUP), target.acquire(1)
        m[0] = 0
        for i in range_(N):
            m[0] = m[0] + four[0][i] + four[1][i] + four[2][i] + four[3][i]
        m[0] = m[0] / (GROUP * N)
        source.release(GROUP)
        target.release(1)

    def subtract(source, given, target):
        m = given.acquire(1)
        for _ in range_(GROUP):
            a, b = source.acquire(1), target.acquire(1)
            for i in range_(N):
                b[i] = a[i] - m[0]
            source.release(1)
            target.release(1)
        given.release(1)

    workers = [
        Worker(mean, [x.cons(depth=GROUP), means.prod()]),
        Worker(subtract, [x.cons(), means.cons(), y.prod()]),
    ]

    def sequence(a, b, px, cy):
        px.fill(a)
        cy.drain(b, wait=True)

    return program(device, sequence, [vector(N * GROUP)] * 2, [x.prod(), y.cons()], workers)

"""FlashAttention in one herd: O = softmax(Q Kᵀ / sqrt(dk)) V, head by head, the scores never leaving a core.

A segment works on one head, with a herd of num_q_tiles x num_cascade_stages cores: column tx owns a tile of queries, row ty
(a stage) a range of keys. Each stage's K and V blocks come through a MemTile and are broadcast to the cores of its row.
After its range a core holds an unnormalised output O with running maxima m and sums l; the rows merge these down the
cascade, and row 0 divides and sends the result. On XDNA 2 two heads run at once, two segments of 4x4 cores; on XDNA 1 one.

Q travels with K: every stage needs all query tiles, and each core keeps the one of its column. A launch is one block of
lqp queries of the heads that run at once (and, where dv is wider than a tile, one slice of V's columns). ``p`` are the
parameters, complete and checked.
"""

from dataclasses import dataclass

from air.dialects import affine, arith, scf
from air.dialects.affine import apply as affine_apply
from air.dialects.air import *
from air.dialects.arith import ConstantOp
from air.dialects.func import CallOp, FuncOp
from air.dialects.memref import AllocOp, DeallocOp, load, store
from air.dialects.scf import for_, yield_
from air.ir import *

from designs.attention.parameters import Parameters

SLICE = 64  # columns of the slices that dk and dv are cut into
PANEL = 8  # columns that lie together in a core's tile
OBJECT = "attention.o"


def chunks(p):
    """Blocks of keys that a stage goes through."""
    return p.lk // (p.num_cascade_stages * p.lkp)


def slices(p):
    """(of dk, of dv): tiles of SLICE columns."""
    return p.dk // SLICE, p.dv // SLICE


def memref(shape, space=None, element=None):
    """A buffer's type; space 1 is the MemTiles', 2 the cores' memory."""
    where = {} if space is None else {"memory_space": IntegerAttr.get(T.i32(), space)}
    return MemRefType.get(shape, element or T.bf16(), **where)


def affine_of(expression, *values):
    """``expression`` over the symbols of run-time index values, as one affine.apply."""
    symbols = [AffineSymbolExpr.get(i) for i in range(len(values))]
    return affine_apply(AffineMap.get(0, len(values), [expression(*symbols)]), list(values))


@dataclass(frozen=True)
class Memory:
    """The types of every buffer."""

    query: object
    scores: object
    output: object
    row: object
    counter: object
    staged: object
    gathered: object

    @classmethod
    def of(cls, p):
        l1, rows = 2, p.lkp
        return cls(
            query=memref([rows, SLICE], l1),
            scores=memref([rows, rows], l1),
            output=memref([rows, SLICE], l1),
            row=memref([rows], l1),
            counter=memref([3], l1, T.i32()),
            staged=memref([rows, SLICE], 1),
            gathered=memref([p.lqp, SLICE], 1),
        )


def declare_kernels(p, t):
    """The functions of designs/kernels/attention.cc that a core calls."""
    f32, i32 = T.f32(), T.i32()
    kernels = {
        "zero_scores": [t.scores],
        "zero_output": [t.output],
        "zero_sums": [t.row],
        "lowest_maxima": [t.row],
        "copy_queries": [t.query, t.query],
        "matmul_qk": [t.query, t.query, t.scores],
        "matmul_pv": [t.scores, t.output, t.output],
        "softmax_step": [t.scores, t.row, t.row, t.row, f32],
        "rescale_output": [t.row, t.output],
        "accumulate_sums": [t.row, t.row, t.row],
        "merge_partials": [t.output, t.row, t.row, t.output, t.row, t.row, f32],
        "divide_output": [t.row, t.output],
    }
    if p.window is not None:
        kernels["mask_window"] = [t.scores, i32, i32, i32]
    elif p.causal:
        kernels["mask_causal"] = [t.scores, i32, i32]
    for name, arguments in kernels.items():
        declared = FuncOp(name=name, type=FunctionType.get(arguments, []), visibility="private")
        declared.attributes["link_with"] = StringAttr.get(OBJECT)
        declared.attributes["llvm.emit_c_interface"] = UnitAttr.get()


def declare_channels(p):
    """DDR to MemTile (``In``), MemTile to a row of cores (broadcast), core to core (cascade), and the way back."""
    heads, columns, stages = p.num_heads_per_unroll, p.num_q_tiles, p.num_cascade_stages
    for stage in range(stages):
        for name in ("QK", "V"):
            Channel(f"{name}In_{stage}", size=[heads])
            Channel(f"{name}_{stage}", size=[heads, 1, 1], broadcast_shape=[heads, 1, columns])
    for name in ("cascade_o", "cascade_m", "cascade_l"):
        channel(name, size=[columns, stages - 1], channel_type="npu_cascade")
    Channel("Gather", size=[columns, 1])
    Channel("Out", size=[heads])


# ---- DDR


def send_head(p, head, position, q, k, v):
    """All transfers of one head of a launch: its queries to every stage, and each stage's range of K and V."""
    lx, ly, lz = position
    group, at_once = p.num_heads // p.num_kv_heads, p.num_heads_per_unroll
    (dk_slices, dv_slices), rows = slices(p), chunks(p) * p.lkp
    queries = affine_of(lambda x, y: (y * at_once + head) * (p.lq * p.dk) + x * (p.lqp * p.dk), lx, ly)
    segment = ConstantOp(IndexType.get(), head)
    for stage in range(p.num_cascade_stages):
        ChannelPut(
            f"QKIn_{stage}", q, indices=[segment], offsets=[0, queries],
            sizes=[p.num_q_tiles, dk_slices, p.lkp, SLICE], strides=[p.lkp * p.dk, SLICE, p.dk, 1],
        )  # fmt: skip
    for stage in range(p.num_cascade_stages):
        keys = affine_of(
            lambda y, first=stage * rows * p.dk: AffineExpr.get_floor_div(y * at_once + head, group) * (p.lk * p.dk)
            + first,
            ly,
        )
        ChannelPut(
            f"QKIn_{stage}", k, indices=[segment], offsets=[0, keys],
            sizes=[chunks(p), dk_slices, p.lkp, SLICE], strides=[p.lkp * p.dk, SLICE, p.dk, 1],
        )  # fmt: skip
    for stage in range(p.num_cascade_stages):
        values = affine_of(
            lambda y, z, first=stage * rows * SLICE: (AffineExpr.get_floor_div(y * at_once + head, group) * dv_slices + z) * (p.lk * SLICE)
            + first,
            ly, lz,
        )  # fmt: skip
        ChannelPut(
            f"VIn_{stage}", v, indices=[segment], offsets=[0, 0, values],
            sizes=[chunks(p), p.lkp, SLICE], strides=[p.lkp * SLICE, SLICE, 1],
        )  # fmt: skip


def receive_head(p, head, position, out):
    """The output of one head of a launch: a block of lqp rows and SLICE columns."""
    at = affine_of(
        lambda x, y, z: ((y * p.num_heads_per_unroll + head) * slices(p)[1] + z) * (p.lq * SLICE)
        + x * (p.lqp * SLICE),
        *position,
    )
    ChannelGet(
        "Out", out, indices=[ConstantOp(IndexType.get(), head)],
        offsets=[0, 0, at], sizes=[1, p.lqp, SLICE], strides=[p.lq * SLICE, SLICE, 1],
    )  # fmt: skip


# ---- MemTiles


def relay(p, source, target, buffer, turns, seg):
    """Take a row-major tile from DDR and hand it to a row of cores in panels, ``turns`` times."""
    zero = ConstantOp(IndexType.get(), 0)
    for _ in for_(0, turns, 1):
        ChannelGet(source, buffer, indices=[seg])
        ChannelPut(
            target, buffer, indices=[seg, zero, zero],
            offsets=[0, 0, 0], sizes=[SLICE // PANEL, p.lkp, PANEL], strides=[PANEL, SLICE, 1],
        )  # fmt: skip
        yield_([])


def relay_all(p, t, seg):
    """Every stage's queries and keys through one buffer, its values through another."""
    turns = slices(p)[0] * (p.num_q_tiles + chunks(p))
    for stage in range(p.num_cascade_stages):
        relay(p, f"QKIn_{stage}", f"QK_{stage}", AllocOp(t.staged, [], []), turns, seg)
    for stage in range(p.num_cascade_stages):
        relay(p, f"VIn_{stage}", f"V_{stage}", AllocOp(t.staged, [], []), chunks(p), seg)


def gather(p, t, seg):
    """Put the query tiles of row 0 together and send them to DDR."""
    whole = AllocOp(t.gathered, [], [])
    for tile in range(p.num_q_tiles):
        ChannelGet(
            "Gather", whole, indices=[tile, 0],
            offsets=[tile * p.lkp, 0], sizes=[p.lkp, SLICE], strides=[SLICE, 1],
        )  # fmt: skip
    ChannelPut("Out", whole, indices=[seg])
    DeallocOp(whole)


# ---- cores


def then(condition, body):
    """Run ``body`` where a run-time condition holds."""
    branch = scf.IfOp(condition)
    with InsertionPoint(branch.then_block):
        body()
        scf.YieldOp([])


def number(value):
    """An index as i32, for kernels and counters."""
    return arith.IndexCastOp(T.i32(), value).result


def constant(value):
    return ConstantOp(T.i32(), value).result


def compare(predicate, left, right):
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


class Core:
    """The program of the core in column tx and row ty of segment seg's herd, with its buffers."""

    def __init__(self, p, t, place, buffers):
        self.p, self.t = p, t
        self.tx, self.ty, self.seg = place
        self.queries, (self.qk, self.v, self.scores, self.output, self.m, self.l, self.counter) = buffers
        self.scale = ConstantOp(T.f32(), p.scale).result

    def at_stage(self, stage, body, otherwise=None):
        """Code for one row of the herd."""
        row = IntegerSet.get(0, 2, [AffineSymbolExpr.get(0), AffineSymbolExpr.get(1) - stage], [False, True])
        branch = affine.AffineIfOp(row, cond_operands=[self.tx, self.ty], has_else=otherwise is not None)
        for block, emit in ((branch.then_block, body), (otherwise and branch.else_block, otherwise)):
            if emit is not None:
                with InsertionPoint(block):
                    emit()
                    affine.AffineYieldOp([])

    def receive(self, name, buffer):
        """The next tile of this row's channel."""
        for stage in range(self.p.num_cascade_stages):
            self.at_stage(stage, lambda s=stage: ChannelGet(f"{name}_{s}", buffer, indices=[self.seg, self.ty, self.tx]))

    def run(self):
        """One launch: keep the queries of this column, go through this row's keys, merge."""
        CallOp([], "zero_output", [self.output])
        CallOp([], "zero_sums", [self.l])
        CallOp([], "lowest_maxima", [self.m])
        for tile in range(self.p.num_q_tiles):
            mine = compare("eq", number(self.tx), constant(tile))
            for kept in self.queries:
                self.receive("QK", self.qk)
                then(mine, lambda kept=kept: CallOp([], "copy_queries", [self.qk, kept]))
        for chunk in for_(0, chunks(self.p), 1):
            self.step(*self.blocks(chunk))
            yield_([])
        self.merge()
        if self.p.causal:
            self.count()

    def blocks(self, chunk):
        """(block of queries, block of keys) that this core is at, None where no mask asks."""
        if not self.p.causal:
            return None, None
        keys = arith.AddIOp(arith.MulIOp(number(self.ty), constant(chunks(self.p))), number(chunk)).result
        return arith.AddIOp(load(self.counter, [0]), number(self.tx)).result, keys

    def step(self, queries, keys):
        """One block of keys: scores, mask, online softmax, output. What is hidden is received all the same."""
        wanted = self.seen(queries, keys) if self.p.causal_skip else None
        CallOp([], "zero_scores", [self.scores])
        for kept in self.queries:
            self.receive("QK", self.qk)
            self.where(wanted, lambda kept=kept: CallOp([], "matmul_qk", [kept, self.qk, self.scores]))
        self.receive("V", self.v)
        self.where(wanted, lambda: self.accumulate(queries, keys))

    def where(self, wanted, body):
        """``body`` under a condition, or always."""
        if wanted is None:
            body()
        else:
            then(wanted, body)

    def seen(self, queries, keys):
        """Whether any key of the block is visible to any query of the other."""
        seen = compare("sle", keys, queries)
        if self.p.window is None:
            return seen
        oldest = arith.SubIOp(queries, constant(self.p.window // self.p.lkp)).result
        return arith.AndIOp(seen, compare("sge", keys, oldest)).result

    def mask(self, queries, keys):
        """Hide scores, where a mask asks for it."""
        if self.p.window is not None:
            CallOp([], "mask_window", [self.scores, queries, keys, constant(self.p.window // self.p.lkp)])
        elif self.p.causal:
            CallOp([], "mask_causal", [self.scores, queries, keys])

    def accumulate(self, queries, keys):
        """Online softmax of the scores, then the output."""
        self.mask(queries, keys)
        total = AllocOp(self.t.row, [], [])
        correction = AllocOp(self.t.row, [], [])
        rows = [self.m, total, correction]
        CallOp([], "softmax_step", [self.scores, *rows, self.scale])
        CallOp([], "rescale_output", [correction, self.output])
        CallOp([], "matmul_pv", [self.scores, self.v, self.output])
        CallOp([], "accumulate_sums", [total, correction, self.l])
        DeallocOp(total)
        DeallocOp(correction)

    def merge(self):
        """Down the cascade: the last row begins, each other row adds its part, row 0 divides and sends."""
        last = self.p.num_cascade_stages - 1
        self.at_stage(last, self.pass_on, lambda: self.at_stage(0, self.finish, self.merge_and_pass_on))

    def pass_on(self):
        """Put O, m and l to the core below."""
        below = arith.SubIOp(self.ty, ConstantOp(IndexType.get(), 1))
        for name, buffer in (("o", self.output), ("m", self.m), ("l", self.l)):
            ChannelPut(f"cascade_{name}", buffer, indices=[self.tx, below])

    def take(self):
        """Get O, m and l of the rows above and merge them with this row's."""
        above = [AllocOp(kind, [], []) for kind in (self.t.output, self.t.row, self.t.row)]
        for name, buffer in zip("oml", above):
            ChannelGet(f"cascade_{name}", buffer, indices=[self.tx, self.ty])
        CallOp([], "merge_partials", [*above, self.output, self.m, self.l, self.scale])
        for buffer in above:
            DeallocOp(buffer)

    def merge_and_pass_on(self):
        self.take()
        self.pass_on()

    def finish(self):
        """Merge, divide by the sums, and send the tile row-major to the MemTile."""
        self.take()
        CallOp([], "divide_output", [self.l, self.output])
        ChannelPut(
            "Gather", self.output, indices=[self.tx, ConstantOp(IndexType.get(), 0)],
            offsets=[0, 0, 0], sizes=[self.p.lkp, SLICE // PANEL, PANEL], strides=[PANEL, self.p.lkp * PANEL, 1],
        )  # fmt: skip

    def count(self):
        """Launches count the slices of V, then the groups of heads, then the blocks of queries: counter[2], [1], [0]. The last
        launch leaves zeros, as the first one of the next run needs them."""
        p = self.p
        self.increment(2, (p.lq // p.lkp, p.num_heads // p.num_heads_per_unroll, slices(p)[1]))

    def increment(self, place, limits):
        """Add to a digit of the counter; at its limit start anew and carry."""
        step, limit = self.p.num_q_tiles if place == 0 else 1, constant(limits[place])
        following = arith.AddIOp(load(self.counter, [place]), constant(step)).result

        def carry():
            store(constant(0), self.counter, [place])
            if place > 0:
                self.increment(place - 1, limits)

        then(compare("slt", following, limit), lambda: store(following, self.counter, [place]))
        then(compare("sge", following, limit), carry)


# ---- the whole


def segment_body(p, t, seg):
    """One head: relays, the herd, the gathering of its output."""
    relay_all(p, t, seg)
    queries = [AllocOp(t.query, [], []) for _ in range(slices(p)[0])]
    kinds = [t.query, t.output, t.scores, t.output, t.row, t.row, t.counter]
    buffers = [AllocOp(kind, [], []) for kind in kinds]

    @herd(name="attention", sizes=[p.num_q_tiles, p.num_cascade_stages], operands=[*queries, *buffers, seg], link_with=OBJECT)
    def herd_body(tx, ty, _columns, _rows, *given):
        *memory, segment_index = given
        kept, rest = memory[: len(queries)], memory[len(queries) :]
        Core(p, t, (tx, ty, segment_index), (kept, rest)).run()

    gather(p, t, seg)
    for buffer in (*queries, *buffers):
        DeallocOp(buffer)


@module_builder
def attention(p):
    """The module for complete parameters. Arguments: q [num_heads, lq, dk], k [num_kv_heads, lk, dk], v [num_kv_heads * dv/64, lk, 64] and
    out [num_heads * dv/64, lq, 64], bf16: V and the output lie in slices of 64 columns."""
    t = Memory.of(p)
    dv_slices = slices(p)[1]
    declare_kernels(p, t)
    declare_channels(p)
    q_type = memref([p.num_heads, p.lq, p.dk])
    k_type = memref([p.num_kv_heads, p.lk, p.dk])
    v_type = memref([p.num_kv_heads * dv_slices, p.lk, SLICE])
    out_type = memref([p.num_heads * dv_slices, p.lq, SLICE])
    grid = [p.lq // p.lqp, p.num_heads // p.num_heads_per_unroll, dv_slices]

    @FuncOp.from_py_func(q_type, k_type, v_type, out_type)
    def attention_bf16(q, k, v, out):
        @launch(operands=[q, k, v, out], sizes=grid)
        def launch_body(lx, ly, lz, _nx, _ny, _nz, q, k, v, out):
            position = (lx, ly, lz)
            for head in range(p.num_heads_per_unroll):
                send_head(p, head, position, q, k, v)

            @segment(name="head", operands=[], sizes=[p.num_heads_per_unroll, 1])
            def each(seg_x, _seg_y, _segments, _one):
                segment_body(p, t, seg_x)

            for head in range(p.num_heads_per_unroll):
                receive_head(p, head, position, out)


def build(device="npu2", lq=512, num_heads=2, **sizes):
    """The module for a device and sizes, the fields of Parameters. ValueError names a rule that fails."""
    return attention(Parameters(lq=lq, num_heads=num_heads, **sizes).of_mapping("fused", device))


def objects(device="npu2", lkp=64, **_):
    """What the object files are made of, {file: (source beside this file, flags)}, for build's arguments."""
    flags = [f"-DBQ={lkp}", f"-DBK={lkp}", f"-DDK={SLICE}", f"-DDV={SLICE}"]
    if device == "npu2":
        flags.append("-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")  # XDNA 2 multiplies in BFP16
    return {OBJECT: ("../kernels/attention.cc", flags)}


def options(device="npu2", **_):
    """XRTBackend's arguments, for build's: no double buffering, and on XDNA 2 an ELF, which loads the cores anew each run."""
    output = "elf" if device == "npu2" else "xclbin"
    tiling = [1, 1, 1]  # every launch starts transfers of its own
    return {"runtime_loop_tiling_sizes": tiling, "omit_pingpong": "all", "output_format": output, "instance_name": "attention_bf16"}

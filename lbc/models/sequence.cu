// The recurrent core's steps on a Hopper GPU or newer, a whole sequence as one kernel each way; see sequence.py.
//
// A cluster of UNITS / 32 blocks plays sixteen rows of the batch through all steps.  A block owns 32 units: their
// four rows of the weights stay in its registers, their cells too, and all that the blocks of a cluster tell each
// other in a step is sixteen rows of h (forward) or of its gradient (backward), through shared memory.
//
// A warp owns four units.  A thread (row, column) = (lane / 4, lane % 4) of a product's tile holds all four gates of
// unit 4 * warp + column for rows `row` and `row + 8`, because the columns of the two tiles of a warp are
// i f i f i f i f and g o g o g o g o.  Gates are laid out [unit][gate] in memory, so that they are one load of 8 bytes.

#ifndef EMULATED
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define SHARED(type, name) __shared__ __align__(16) type name
#define KERNEL extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(256, 1)
#define DEVICE __device__ __forceinline__
#endif

#define BLOCKS (UNITS / 32)
#define ROWS 16

#ifndef EMULATED
DEVICE u32 block_in_cluster() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The same variable in the shared memory of another block of the cluster.
template <typename T> DEVICE T* in_block(T* here, u32 rank) {
    T* there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
    return there;
}

DEVICE void wait_for_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// c += a b for a tile of 16 x 8, with 16 inner elements.
DEVICE void multiply(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVICE u32 two_bf16(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

DEVICE float low(u32 both) { return __uint_as_float(both << 16); }
DEVICE float high(u32 both) { return __uint_as_float(both & 0xffff0000u); }
DEVICE float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
#endif

DEVICE float squash(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// Rows of an operand, as pairs of bfloat16; four words more, so that no two lanes of a warp meet in a bank.
template <int WORDS> struct Operand {
    u32 rows[ROWS][WORDS + 4];

    DEVICE void fragment(u32 (&a)[4], int step, int row, int column) const {
        a[0] = rows[row][8 * step + column];
        a[1] = rows[row + 8][8 * step + column];
        a[2] = rows[row][8 * step + column + 4];
        a[3] = rows[row + 8][8 * step + column + 4];
    }
};

struct Forward {
    Operand<UNITS / 2> h[2];  // as this step reads it, and as the next one will
    u16 mine[ROWS][32];       // this block's part of the next one
};

// gates: [T, B, U, 4];  weight: [4 U, U];  first: [T, B];  state: [2, B, U];  sums: [T, B, U, 4];  cells: [T + 1, B, U],
// before every step and at the end;  out: [T, B, U];  hidden: [T, B, U], h as the steps read it.
KERNEL forward(const uint2* gates, const u16* weight, const u8* first, const float* state, uint2* sums, float* cells,
               float* out, u16* hidden, int length, int batch) {
    SHARED(Forward, shared);
    const u32 rank = block_in_cluster();
    const int thread = threadIdx.x, warp = thread / 32, row = thread % 32 / 4, column = thread % 4;
    const int base = blockIdx.x / BLOCKS * ROWS, mine = 4 * warp + column, unit = 32 * rank + mine;

    u32 w[UNITS / 16][2][2];
    for (int tile = 0; tile < 2; tile++) {
        const int gate = 2 * tile + row % 2;  // `row` is the column of the weights here
        const u16* from = weight + (gate * UNITS + 32 * rank + 4 * warp + row / 2) * UNITS + 2 * column;
#pragma unroll
        for (int step = 0; step < UNITS / 16; step++)
            for (int half = 0; half < 2; half++)
                w[step][tile][half] = *(const u32*)(from + 16 * step + 8 * half);
    }

    for (int pair = thread; pair < ROWS * UNITS / 2; pair += 256) {
        const int r = pair / (UNITS / 2), k = pair % (UNITS / 2);
        const bool kept = base + r < batch && !first[base + r];
        const float* h = state + (base + r) * UNITS + 2 * k;
        const u32 both = kept ? two_bf16(h[0], h[1]) : 0;
        shared.h[0].rows[r][k] = both;
        if (k / 16 == rank && base + r < batch) ((u32*)hidden)[(base + r) * (UNITS / 2) + k] = both;
    }

    bool here[2], reset[2];
    float cell[2];
    uint2 given[2];
    int at[2];
    for (int j = 0; j < 2; j++) {
        const int r = base + row + 8 * j;
        here[j] = r < batch;
        at[j] = r * UNITS + unit;
        reset[j] = here[j] && first[r];
        given[j] = here[j] ? gates[at[j]] : uint2{0, 0};
        cell[j] = here[j] ? state[batch * UNITS + at[j]] : 0.0f;
        if (here[j]) cells[at[j]] = cell[j];
    }
    wait_for_cluster();

    for (int t = 0; t < length; t++) {
        const int size = batch * UNITS;
        uint2 next[2] = {{0, 0}, {0, 0}};  // read now, needed in the next step
        bool reset_next[2] = {false, false};
        if (t + 1 < length)
            for (int j = 0; j < 2; j++)
                if (here[j]) {
                    next[j] = gates[size + at[j]];
                    reset_next[j] = first[batch + base + row + 8 * j];
                }

        float sum[2][2][4] = {};  // two of each tile, so that a product need not wait for the last one
        const Operand<UNITS / 2>& h = shared.h[t % 2];
#pragma unroll
        for (int step = 0; step < UNITS / 16; step++) {
            u32 a[4];
            h.fragment(a, step, row, column);
            multiply(sum[step % 2][0], a, w[step][0]);
            multiply(sum[step % 2][1], a, w[step][1]);
        }

        for (int j = 0; j < 2; j++) {
            const float i = sum[0][0][2 * j] + sum[1][0][2 * j] + low(given[j].x);
            float f = sum[0][0][2 * j + 1] + sum[1][0][2 * j + 1] + high(given[j].x);
            const float g = sum[0][1][2 * j] + sum[1][1][2 * j] + low(given[j].y);
            const float o = sum[0][1][2 * j + 1] + sum[1][1][2 * j + 1] + high(given[j].y);
            if (reset[j]) f = low(0xff80u);  // minus infinity: a closed forget gate resets the cell
            cell[j] = sigmoid(f) * cell[j] + sigmoid(i) * squash(g);
            const float output = sigmoid(o) * squash(cell[j]);
            shared.mine[row + 8 * j][mine] = (u16)two_bf16(reset_next[j] ? 0.0f : output, 0.0f);
            if (here[j]) {
                sums[at[j]] = uint2{two_bf16(i, f), two_bf16(g, o)};
                cells[size + at[j]] = cell[j];
                out[at[j]] = output;
            }
            given[j] = next[j];
            reset[j] = reset_next[j];
        }
        gates += size, sums += size, cells += size, out += size, hidden += size, first += batch;

        __syncthreads();
        for (int piece = thread; piece < 64 * BLOCKS; piece += 256) {  // of 8 units, for every block
            const u32 to = piece / 64;
            const int r = piece % 64 / 4, part = piece % 4;
            const uint4 eight = *(const uint4*)&shared.mine[r][8 * part];
            *(uint4*)in_block(&shared.h[(t + 1) % 2].rows[r][16 * rank + 4 * part], to) = eight;
            if (to == rank && base + r < batch && t + 1 < length)
                *(uint4*)(hidden + (base + r) * UNITS + 32 * rank + 8 * part) = eight;
        }
        wait_for_cluster();
    }
}

struct Backward {
    Operand<64> mine;                      // gradients of this block's 128 gates
    float parts[2][BLOCKS][ROWS][32 + 4];  // what they, and those of the other blocks, mean for h of its 32 units
};

// As above;  grad_out: [T, B, U];  grad_state: [2, B, U], of the last state, then of the first;  grads: [T, B, U, 4], of the
// gates.
KERNEL backward(const u16* weight, const u8* first, const float* grad_out, const uint2* sums, const float* cells,
                float* grad_state, uint2* grads, int length, int batch) {
    SHARED(Backward, shared);
    const u32 rank = block_in_cluster();
    const int thread = threadIdx.x, warp = thread / 32, row = thread % 32 / 4, column = thread % 4;
    const int base = blockIdx.x / BLOCKS * ROWS, mine = 4 * warp + column, unit = 32 * rank + mine;
    const int begin = warp * (UNITS / 8);  // the units whose h this warp differentiates
    constexpr int TILES = UNITS / 64;

    u32 w[8][TILES][2];
#pragma unroll
    for (int step = 0; step < 8; step++)
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
            for (int half = 0; half < 2; half++) {
                const int k = 16 * step + 8 * half + 2 * column;  // [unit][gate]
                const u16* from = weight + (k % 4 * UNITS + 32 * rank + k / 4) * UNITS + begin + 8 * tile + row;
                w[step][tile][half] = from[0] | (u32)from[UNITS * UNITS] << 16;
            }

    const int size = batch * UNITS;
    bool here[2], kept[2] = {true, true};
    float after[2], grad_cell[2], grad_h[2], product[2] = {0.0f, 0.0f};
    uint2 sum[2];
    float before[2];
    int at[2];
    first += (length - 1) * batch, cells += (length - 1) * size;
    grad_out += (length - 1) * size, sums += (length - 1) * size, grads += (length - 1) * size;
    for (int j = 0; j < 2; j++) {
        const int r = base + row + 8 * j;
        here[j] = r < batch;
        at[j] = r * UNITS + unit;
        after[j] = here[j] ? cells[size + at[j]] : 0.0f;
        before[j] = here[j] ? cells[at[j]] : 0.0f;
        sum[j] = here[j] ? sums[at[j]] : uint2{0, 0};
        grad_h[j] = here[j] ? grad_out[at[j]] : 0.0f;
        product[j] = here[j] ? grad_state[at[j]] : 0.0f;
        grad_cell[j] = here[j] ? grad_state[size + at[j]] : 0.0f;
    }
    wait_for_cluster();  // no block writes into another one that has not begun

    for (int t = length - 1; t >= 0; t--) {
        for (int j = 0; j < 2; j++) {
            const float gh = grad_h[j] + (kept[j] ? product[j] : 0.0f);
            const float i = sigmoid(low(sum[j].x)), f = sigmoid(high(sum[j].x));
            const float g = squash(low(sum[j].y)), o = sigmoid(high(sum[j].y));
            const float squashed = squash(after[j]);
            const float gc = grad_cell[j] + gh * o * (1.0f - squashed * squashed);
            const uint2 found = {two_bf16(gc * g * i * (1.0f - i), gc * before[j] * f * (1.0f - f)),
                                 two_bf16(gc * i * (1.0f - g * g), gh * squashed * o * (1.0f - o))};
            grad_cell[j] = gc * f;
            after[j] = before[j];
            *(uint2*)&shared.mine.rows[row + 8 * j][2 * mine] = found;
            if (here[j]) {
                grads[at[j]] = found;
                kept[j] = !first[base + row + 8 * j];
            }
        }
        first -= batch, cells -= size, grad_out -= size, sums -= size, grads -= size;
        if (t > 0)
            for (int j = 0; j < 2; j++)
                if (here[j]) {  // read now, needed in the next step
                    before[j] = cells[at[j]];
                    sum[j] = sums[at[j]];
                    grad_h[j] = grad_out[at[j]];
                }

        __syncthreads();
        float part[TILES][4] = {};
#pragma unroll
        for (int step = 0; step < 8; step++) {
            u32 a[4];
            shared.mine.fragment(a, step, row, column);
#pragma unroll
            for (int tile = 0; tile < TILES; tile++) multiply(part[tile], a, w[step][tile]);
        }
        float(*to)[32 + 4] = in_block(&shared.parts[t % 2][rank], begin / 32)[0];
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const int n = begin % 32 + 8 * tile + 2 * column;
            *(float2*)&to[row][n] = float2{part[tile][0], part[tile][1]};
            *(float2*)&to[row + 8][n] = float2{part[tile][2], part[tile][3]};
        }
        wait_for_cluster();
        for (int j = 0; j < 2; j++) {
            product[j] = 0.0f;
            for (int block = 0; block < BLOCKS; block++) product[j] += shared.parts[t % 2][block][row + 8 * j][mine];
        }
    }
    for (int j = 0; j < 2; j++)
        if (here[j]) {
            grad_state[at[j]] = kept[j] ? product[j] : 0.0f;
            grad_state[size + at[j]] = grad_cell[j];
        }
}

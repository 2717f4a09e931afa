// What lies between the convolutions of deep torsos: bias, ReLU, sums, maxima; see blocks.py.
//
// Images are [n][y][x][channel] in bfloat16.  A thread has eight neighbouring channels, 16 bytes, of one place after
// another, and the same eight of each.  What is null is not there: a bias of zero, a gradient that nobody sent.

#ifndef EMULATED
typedef unsigned char u8;
typedef unsigned int u32;
typedef long long i64;

#define SHARED(type, name) __shared__ __align__(16) type name
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define DEVICE __device__ __forceinline__

DEVICE u32 two_bf16(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
DEVICE float low(u32 both) { return __uint_as_float(both << 16); }
DEVICE float high(u32 both) { return __uint_as_float(both & 0xffff0000u); }
#endif

#define THREADS 256
#define CHANNELS 8

struct Eight {
    float x[CHANNELS];

    DEVICE Eight() {
        for (int c = 0; c < CHANNELS; c++) x[c] = 0.0f;
    }
    DEVICE Eight(const uint4* at) : Eight() {
        if (!at) return;
        const uint4 all = *at;
        const u32 pairs[4] = {all.x, all.y, all.z, all.w};
        for (int p = 0; p < 4; p++) {
            x[2 * p] = low(pairs[p]);
            x[2 * p + 1] = high(pairs[p]);
        }
    }
    DEVICE Eight(const float* bias, int group) : Eight() {
        for (int c = 0; bias && c < CHANNELS; c++) x[c] = bias[CHANNELS * group + c];
    }
    DEVICE uint4 packed() const {
        return uint4{two_bf16(x[0], x[1]), two_bf16(x[2], x[3]), two_bf16(x[4], x[5]), two_bf16(x[6], x[7])};
    }
    DEVICE void operator+=(const Eight& other) {
        for (int c = 0; c < CHANNELS; c++) x[c] += other.x[c];
    }
    DEVICE Eight positive() const {  // ReLU, which lets a NaN through
        Eight made;
        for (int c = 0; c < CHANNELS; c++) made.x[c] = x[c] < 0.0f ? 0.0f : x[c];
        return made;
    }
};

// Where a pixel lies, in pieces of eight channels: one row after the other, or blocks of 2 x 2 pixels.
DEVICE i64 place(i64 image, int y, int x, int height, int width, int groups, int quarters) {
    if (!quarters) return ((image * height + y) * width + x) * groups;
    return (((image * (height / 2) + y / 2) * (width / 2) + x / 2) * 4 + y % 2 * 2 + x % 2) * groups;
}

template <typename T> DEVICE T* at(T* base, i64 place) { return base ? base + place : base; }

// grown = relu(h + bias);  count: in pieces of eight channels
KERNEL bias_relu(const uint4* h, const float* bias, uint4* grown, int count, int groups) {
    const int first = blockIdx.x * THREADS + threadIdx.x;
    const Eight own(bias, first % groups);
    for (int i = first; i < count; i += gridDim.x * THREADS) {
        Eight x(h + i);
        x += own;
        grown[i] = x.positive().packed();
    }
}

// sum = x + h + bias;  grown = relu(sum)
KERNEL add_relu(const uint4* x, const uint4* h, const float* bias, uint4* sum, uint4* grown, int count, int groups) {
    const int first = blockIdx.x * THREADS + threadIdx.x;
    const Eight own(bias, first % groups);
    for (int i = first; i < count; i += gridDim.x * THREADS) {
        Eight made(h + i);
        made += own;
        made += Eight(x + i);
        sum[i] = made.packed();
        grown[i] = made.positive().packed();
    }
}

// The largest of 3 x 3, every second place:  sum = max(h) + bias;  grown = relu(sum);  where: which of the nine, the
// first of equals.  h: [images, height, width, 8 groups], or in blocks of 2 x 2
KERNEL pool(const uint4* h, const float* bias, uint4* sum, uint4* grown, uint2* where, int images, int height, int width,
            int groups, int quarters) {
    const int rows = (height + 1) / 2, columns = (width + 1) / 2, count = images * rows * columns * groups;
    const int first = blockIdx.x * THREADS + threadIdx.x, group = first % groups;
    const Eight own(bias, group);
    for (int i = first; i < count; i += gridDim.x * THREADS) {
        const int column = i / groups % columns, row = i / groups / columns % rows;
        const i64 image = i / groups / columns / rows;
        Eight best;
        u32 which[CHANNELS];
        bool begun = false;
        for (int dy = 0; dy < 3; dy++)
            for (int dx = 0; dx < 3; dx++) {
                const int y = 2 * row - 1 + dy, x = 2 * column - 1 + dx;
                if (y < 0 || y >= height || x < 0 || x >= width) continue;
                const Eight seen(h + place(image, y, x, height, width, groups, quarters) + group);
                for (int c = 0; c < CHANNELS; c++)
                    if (!begun || seen.x[c] > best.x[c] || seen.x[c] != seen.x[c]) {  // a NaN stays
                        best.x[c] = seen.x[c];
                        which[c] = 3 * dy + dx;
                    }
                begun = true;
            }
        best += own;
        sum[i] = best.packed();
        grown[i] = best.positive().packed();
        where[i] = uint2{which[0] | which[1] << 8 | which[2] << 16 | which[3] << 24,
                         which[4] | which[5] << 8 | which[6] << 16 | which[7] << 24};
    }
}

struct Total {
    float of[THREADS][CHANNELS];
};

// grad = grad_sum + grad_grown, but for where grown is zero;  bias_grad: [blocks, channels], each block's part
KERNEL relu_back(const uint4* grad_sum, const uint4* grad_grown, const uint4* grown, uint4* grad, float* bias_grad,
                 int count, int groups) {
    SHARED(Total, total);
    const int thread = threadIdx.x, first = blockIdx.x * THREADS + thread;
    Eight all;
    for (int i = first; i < count; i += gridDim.x * THREADS) {
        Eight made(at(grad_sum, i));
        const Eight through(at(grad_grown, i)), mask(grad_grown ? grown + i : 0);
        for (int c = 0; c < CHANNELS; c++) made.x[c] += mask.x[c] <= 0.0f ? 0.0f : through.x[c];
        grad[i] = made.packed();
        all += made;
    }
    for (int c = 0; c < CHANNELS; c++) total.of[thread][c] = all.x[c];
    for (int half = THREADS / 2; half >= groups; half /= 2) {
        __syncthreads();
        for (int c = 0; thread < half && c < CHANNELS; c++) total.of[thread][c] += total.of[thread + half][c];
    }
    for (int c = 0; thread < groups && c < CHANNELS; c++)
        bias_grad[(blockIdx.x * groups + thread) * CHANNELS + c] = total.of[thread][c];
}

// The gradient of what `pool` read, from that of its maxima.
KERNEL pool_back(const uint4* grad_max, const uint2* where, uint4* grad, int images, int height, int width, int groups,
                 int quarters) {
    const int rows = (height + 1) / 2, columns = (width + 1) / 2, count = images * height * width * groups;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const int group = i % groups, x = i / groups % width, y = i / groups / width % height;
        const i64 image = i / groups / width / height;
        Eight made;
        for (int row = y / 2; row <= (y + 1) / 2 && row < rows; row++)
            for (int column = x / 2; column <= (x + 1) / 2 && column < columns; column++) {
                const i64 from = ((image * rows + row) * columns + column) * groups + group;
                const u32 mine = 3 * (y - (2 * row - 1)) + x - (2 * column - 1);
                const uint2 chosen = where[from];
                const Eight seen(grad_max + from);
                for (int c = 0; c < CHANNELS; c++) {
                    const u32 one = (c < 4 ? chosen.x : chosen.y) >> 8 * (c % 4) & 255;
                    made.x[c] += one == mine ? seen.x[c] : 0.0f;
                }
            }
        grad[place(image, y, x, height, width, groups, quarters) + group] = made.packed();
    }
}

// Observations as the first convolution reads them: frames stacked, centred, in bfloat16; see pixels.py.
//
// A thread makes four neighbouring pixels of one observation, all their channels, in blocks of b x b pixels, where b is
// 1, 2 or 4:  [row][y / b][x / b][y % b][x % b][frame].

#ifndef EMULATED
typedef unsigned int u32;
typedef long long i64;

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define DEVICE __device__ __forceinline__

DEVICE u32 two_bf16(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#endif

#define STACK 4

// frames: [STACK - 1 + T, S, H, W] bytes;  since_first: [T, S];  mean: [STACK, H, W];  spread: [1];  rows: T S
KERNEL numbers(const u32* frames, const i64* since_first, const float4* mean, const float* spread, uint4* out, int rows,
               int sequences, int height, int width, int block) {
    const int quads = height * width / 4, at = blockIdx.x * 256 + threadIdx.x;
    if (at >= rows * quads) return;
    const int row = at / quads, quad = at % quads;
    const int age = since_first[row] < STACK - 1 ? (int)since_first[row] : STACK - 1;
    const float unit = 255.0f, scale = *spread;

    float x[4][STACK];
    for (int k = 0; k < STACK; k++) {
        const int back = STACK - 1 - k < age ? STACK - 1 - k : age;  // the episode's first frame repeats
        const i64 frame = (i64)(row / sequences + STACK - 1 - back) * sequences + row % sequences;
        const u32 bytes = frames[frame * quads + quad];
        const float4 usual = mean[k * quads + quad];
        x[0][k] = ((bytes & 255) / unit - usual.x) / scale;
        x[1][k] = ((bytes >> 8 & 255) / unit - usual.y) / scale;
        x[2][k] = ((bytes >> 16 & 255) / unit - usual.z) / scale;
        x[3][k] = ((bytes >> 24) / unit - usual.w) / scale;
    }

    const int y = 4 * quad / width, column = 4 * quad % width / block;
    const i64 place = ((i64)row * (height / block) + y / block) * (width / block) + column;
    const i64 to = (block * block * place + block * (y % block)) / 2;  // in pieces of 16 bytes
    const int next = block == 2 ? 2 : 1;  // the other two pixels lie in the block beside it
    for (int half = 0; half < 2; half++) {
        const float(*two)[STACK] = x + 2 * half;
        out[to + next * half] = uint4{two_bf16(two[0][0], two[0][1]), two_bf16(two[0][2], two[0][3]),
                                      two_bf16(two[1][0], two[1][1]), two_bf16(two[1][2], two[1][3])};
    }
}

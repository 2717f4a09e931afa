// Plays the kernel of pixels.cu on a CPU, thread after thread: they have nothing to say to each other.

#include <cstdint>
#include <cstring>

#define EMULATED
#define KERNEL static void
#define DEVICE inline

typedef uint32_t u32;
typedef int64_t i64;
struct uint4 { u32 x, y, z, w; };
struct float4 { float x, y, z, w; };
static struct { int x; } threadIdx, blockIdx;

static u32 to_bf16(float x) {  // to the nearest, ties to even
    u32 bits;
    memcpy(&bits, &x, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static u32 two_bf16(float low, float high) { return to_bf16(low) | to_bf16(high) << 16; }

#include "../../lbc/models/pixels.cu"

extern "C" void launch_numbers(int grid, const u32* frames, const i64* since_first, const float4* mean, const float* spread,
                               uint4* out, int rows, int sequences, int height, int width, int block) {
    for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++)
            numbers(frames, since_first, mean, spread, out, rows, sequences, height, width, block);
}

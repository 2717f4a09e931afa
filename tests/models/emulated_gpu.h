// A GPU on a CPU, for a source of kernels to be included behind it: a fiber for each thread, clusters one after the other.
// Written from the definition of the instructions: tiles are put together as matrices, multiplied, and taken apart.

#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define EMULATED
#define SHARED(type, name) type& name = *(type*)block().memory.data()
#define KERNEL extern "C" void
#define DEVICE inline
#define __syncthreads() block().barrier.wait()
#define THREADS 256

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int64_t i64;
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };

static ucontext_t scheduler;

struct Barrier {
    int count, arrived = 0, generation = 0;
    void wait();
};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(32768);
    int thread, block;
    bool done = false;
};

struct Warp {
    Barrier barrier{32};
    u32 a[32][4], b[32][2];
};

struct Block {
    std::vector<char> memory = std::vector<char>(49152 + 16, (char)0xff);  // NaN until it is written
    Barrier barrier{THREADS};
    Warp warps[THREADS / 32];
};

static Fiber* now;
static std::vector<std::unique_ptr<Block>> blocks;  // of the cluster
static std::unique_ptr<Barrier> cluster;
static std::function<void()> kernel;
static struct { int x; } threadIdx, blockIdx, gridDim;

static Block& block() { return *blocks[now->block]; }

void Barrier::wait() {
    const int mine = generation;
    if (++arrived == count) {
        arrived = 0;
        generation++;
    } else {
        while (generation == mine) swapcontext(&now->context, &scheduler);
    }
}

static float from_bits(u32 bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static u32 to_bf16(float x) {  // to the nearest, ties to even
    u32 bits;
    memcpy(&bits, &x, 4);
    return std::isinf(x) ? bits >> 16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static u32 block_in_cluster() { return now->block; }
static void wait_for_cluster() { cluster->wait(); }
template <typename T> T* in_block(T* here, u32 rank) {
    return (T*)(blocks[rank]->memory.data() + ((char*)here - block().memory.data()));
}
static u32 two_bf16(float low, float high) { return to_bf16(low) | to_bf16(high) << 16; }
static float low(u32 both) { return from_bits(both << 16); }
static float high(u32 both) { return from_bits(both & 0xffff0000u); }
static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

static void multiply(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    Warp& warp = block().warps[now->thread / 32];
    const int lane = now->thread % 32;
    memcpy(warp.a[lane], a, sizeof a);
    memcpy(warp.b[lane], b, sizeof b);
    warp.barrier.wait();
    float left[16][16], right[16][8];
    for (int l = 0; l < 32; l++)
        for (int half = 0; half < 2; half++) {
            for (int down = 0; down < 2; down++) {
                const u32 both = warp.a[l][down + 2 * half];
                left[l / 4 + 8 * down][l % 4 * 2 + 8 * half] = low(both);
                left[l / 4 + 8 * down][l % 4 * 2 + 8 * half + 1] = high(both);
            }
            right[l % 4 * 2 + 8 * half][l / 4] = low(warp.b[l][half]);
            right[l % 4 * 2 + 8 * half + 1][l / 4] = high(warp.b[l][half]);
        }
    for (int e = 0; e < 4; e++)
        for (int k = 0; k < 16; k++) c[e] += left[lane / 4 + e / 2 * 8][k] * right[k][lane % 4 * 2 + e % 2];
    warp.barrier.wait();
}

static void fiber() {
    kernel();
    now->done = true;
    swapcontext(&now->context, &scheduler);
}

static void launch(int grid, int together, std::function<void()> body) {  // so many blocks are a cluster
    kernel = body;
    gridDim.x = grid;
    for (int begin = 0; begin < grid; begin += together) {
        blocks.clear();
        for (int b = 0; b < together; b++) blocks.push_back(std::make_unique<Block>());
        cluster.reset(new Barrier{together * THREADS});
        std::vector<std::unique_ptr<Fiber>> fibers;
        for (int i = 0; i < together * THREADS; i++) {
            fibers.push_back(std::make_unique<Fiber>());
            Fiber& one = *fibers.back();
            one.thread = i % THREADS;
            one.block = i / THREADS;
            getcontext(&one.context);
            one.context.uc_stack.ss_sp = one.stack.data();
            one.context.uc_stack.ss_size = one.stack.size();
            makecontext(&one.context, fiber, 0);
        }
        for (bool left = true; left;) {
            left = false;
            for (auto& one : fibers)
                if (!one->done) {
                    left = true;
                    now = one.get();
                    threadIdx.x = one->thread;
                    blockIdx.x = begin + one->block;
                    swapcontext(&scheduler, &now->context);
                }
        }
    }
}

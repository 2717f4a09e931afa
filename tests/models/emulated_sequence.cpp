// The kernels of sequence.cu on an emulated GPU.

#include "emulated_gpu.h"

#include "../../lbc/models/sequence.cu"

extern "C" void launch_forward(int grid, const uint2* gates, const u16* weight, const u8* first, const float* state,
                               uint2* sums, float* cells, float* out, u16* hidden, int length, int batch) {
    launch(grid, BLOCKS, [=] { forward(gates, weight, first, state, sums, cells, out, hidden, length, batch); });
}

extern "C" void launch_backward(int grid, const u16* weight, const u8* first, const float* grad_out, const uint2* sums,
                                const float* cells, float* grad_state, uint2* grads, int length, int batch) {
    launch(grid, BLOCKS, [=] { backward(weight, first, grad_out, sums, cells, grad_state, grads, length, batch); });
}

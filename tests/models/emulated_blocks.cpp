// The kernels of blocks.cu on an emulated GPU.

#include "emulated_gpu.h"

#include "../../lbc/models/blocks.cu"

extern "C" void launch_bias_relu(int grid, const uint4* h, const float* bias, uint4* grown, int count, int groups) {
    launch(grid, 1, [=] { bias_relu(h, bias, grown, count, groups); });
}

extern "C" void launch_add_relu(int grid, const uint4* x, const uint4* h, const float* bias, uint4* sum, uint4* grown,
                                int count, int groups) {
    launch(grid, 1, [=] { add_relu(x, h, bias, sum, grown, count, groups); });
}

extern "C" void launch_pool(int grid, const uint4* h, const float* bias, uint4* sum, uint4* grown, uint2* where,
                            int images, int height, int width, int groups, int quarters) {
    launch(grid, 1, [=] { pool(h, bias, sum, grown, where, images, height, width, groups, quarters); });
}

extern "C" void launch_relu_back(int grid, const uint4* grad_sum, const uint4* grad_grown, const uint4* grown, uint4* grad,
                                 float* bias_grad, int count, int groups) {
    launch(grid, 1, [=] { relu_back(grad_sum, grad_grown, grown, grad, bias_grad, count, groups); });
}

extern "C" void launch_pool_back(int grid, const uint4* grad_max, const uint2* where, uint4* grad, int images, int height,
                                 int width, int groups, int quarters) {
    launch(grid, 1, [=] { pool_back(grad_max, where, grad, images, height, width, groups, quarters); });
}

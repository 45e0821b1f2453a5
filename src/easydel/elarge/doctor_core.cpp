// Torch's part of `easydel doctor`: its version, its GPU, and the speed of its own products (not of ours).
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <torch/headeronly/version.h>

#include <algorithm>

#include "easydel/base/clock.h"
#include "easydel/elarge/torch_report.h"
#include "easydel/tensor/device.h"
#include "easydel/tensor/torch.h"

namespace easydel::elarge {
namespace {

// The best of a few runs: the library's speed, without what other processes cost.
double gflops_of_linear(at::ScalarType type) {
  const int64_t rows = 512, width = 2048;
  const Tensor x = at::ones({rows, width}, type), weight = at::ones({width, width}, type);
  double best = 0;
  for (int run = 0; run < 6; ++run) {
    const auto begin = Clock::now();
    const Tensor y = at::linear(x, weight);
    const double seconds = seconds_since(begin);
    if (run > 0) best = std::max(best, 2.0 * rows * width * width / seconds * 1e-9);  // the first run wakes the threads
  }
  return best;
}

}  // namespace

std::string doctor_core(double peak_gflops) {
  const at::NoGradGuard no_gradients;
  TorchReport torch;
  torch.version = TORCH_VERSION;
  torch.gpu = tensor::gpu().has_value();
  torch.fp32_gflops = gflops_of_linear(at::kFloat);
  torch.bf16_gflops = gflops_of_linear(at::kBFloat16);
  return describe(torch, peak_gflops);
}

}  // namespace easydel::elarge

#include "easydel/elarge/torch_report.h"

#include <cstdio>

namespace easydel::elarge {

std::string describe(const TorchReport& torch, double peak_gflops) {
  char text[512];
  std::string out = "libtorch          " + torch.version + (torch.gpu ? ", with a GPU\n" : ", no GPU\n");
  const double share = peak_gflops > 0 ? torch.fp32_gflops / peak_gflops : 1;
  std::snprintf(text, sizeof text, "its BLAS          fp32 %.0f GFLOP/s", torch.fp32_gflops);
  out += text;
  if (peak_gflops > 0) {
    std::snprintf(text, sizeof text, " (%.0f%% of the peak)", 100 * share);
    out += text;
  }
  std::snprintf(text, sizeof text, ", bf16 %.0f GFLOP/s\n", torch.bf16_gflops);
  out += text;
  if (share < 0.5) {
    std::snprintf(text, sizeof text, "warning: torch's BLAS reaches only %.0f%% of this machine's fp32 peak\n",
                  100 * share);
    out += text;
    out +=
        "    the sdpa and vanilla attention backends use it; install a torch wheel from PyPI, which has MKL or "
        "OpenBLAS\n";
  }
  return out;
}

}  // namespace easydel::elarge

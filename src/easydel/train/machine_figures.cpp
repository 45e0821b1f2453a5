#include "easydel/train/machine_figures.h"

#include <sys/resource.h>

#include <algorithm>

#include "easydel/kernels/peak.h"
#include "easydel/tensor/executor.h"

namespace easydel::train {

std::optional<double> measured_peak(const models::Model& model) {
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.shard.is_cpu()) return std::nullopt;  // the kernels measure the processor
  const kernels::Peaks peaks = kernels::measure_peaks(tensor::executor());
  return std::max(peaks.fp32_gflops, peaks.bf16_gflops) / 1e3;
}

double peak_memory_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) * 1024;
}

}  // namespace easydel::train

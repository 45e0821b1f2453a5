// `easydel doctor`: what this machine has, and what would make the program slow on it. A face: no torch.
#pragma once

#include <string>

namespace easydel::cli {

// Prints one line per finding on stdout, warnings among them; measures for about two seconds. `folder` is where the disk
// is tried (a checkpoint's folder, or here). 0: also where there were warnings; they are advice.
int doctor(const std::string& folder = ".");

// Torch's part, in libeasydel_core.so: versions, CUDA, and the speed of its BLAS against `peak_gflops` (fp32, all
// threads, measured). Text in lines, for doctor() to print.
std::string doctor_core(double peak_gflops);

}  // namespace easydel::cli

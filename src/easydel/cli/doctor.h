// `easydel doctor`: what this machine has, and what would make the program slow on it. A face: no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::cli {

// What was found; measured figures are of this moment.
struct Machine {
  std::string processor;
  std::vector<std::string> instruction_sets;  // in rising order
  std::string instruction_set_in_use;
  std::string no_tiles;        // why amx is not among them; empty where it is
  std::string bf16_order;      // of additions in products of bf16
  std::string waiting;         // how_threads_wait()
  std::string processor_list;  // the allowed ones, as "0-3,8"
  int processors = 0, allowed_processors = 0, threads = 0;
  int64_t memory_bytes = 0, free_memory_bytes = 0;  // within the control group's limit, where there is one
  std::string disk_folder;
  double file_seconds = 0;                                      // one small file written aside, fsynced and renamed
  std::string disk_error;                                       // instead of file_seconds
  std::string arrow;                                            // version; empty: Parquet and Arrow files refuse
  std::string arrow_error;                                      // why, where it is installed and yet cannot be loaded
  double fp32_gflops = 0, bf16_gflops = 0, read_gigabytes = 0;  // peaks of all threads; 0: not measured
};

// Looks and measures, about a second. `folder`: where the disk is tried.
Machine examine(const std::string& folder);

// The findings in lines, then "warning: ..." lines with what would help.
std::string report(const Machine& machine);

// Prints report(examine(folder)) and torch's part on stdout. Always 0: warnings are advice.
int doctor(const std::string& folder = ".");

}  // namespace easydel::cli

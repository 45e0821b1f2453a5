// `easydel doctor`: hardware and settings of this machine, and what makes the program slow on it. Without torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::cli {

// Findings; measured figures are current.
struct Machine {
  std::string processor;
  std::vector<std::string> instruction_sets;  // in rising order
  std::string instruction_set_in_use;
  std::string no_tiles;        // why amx is missing; empty: it is not missing
  std::string bf16_order;      // of additions in products of bf16
  std::string waiting;         // how_threads_wait()
  std::string processor_list;  // the allowed ones, as "0-3,8"
  int processors = 0, allowed_processors = 0, threads = 0;
  int64_t memory_bytes = 0, free_memory_bytes = 0;  // within the control group's limit, where there is one
  std::string disk_folder;
  double file_seconds = 0;   // one small file written aside, fsynced and renamed
  std::string disk_error;    // instead of file_seconds
  std::string arrow;         // version; empty: Parquet and Arrow files refuse
  std::string arrow_error;   // why, where it is installed and yet cannot be loaded
  std::string images;        // versions; empty: images cannot be decoded
  std::string images_error;  // why, where libeasydel_media.so is installed and yet cannot be loaded
  double fp32_gflops = 0, bf16_gflops = 0, read_gigabytes = 0;  // peaks of all threads; 0: not measured
};

// Examines and measures for about a second. `folder`: where the disk is measured.
Machine examine(const std::string& folder);

// The findings as lines, then "warning: ..." lines with remedies.
std::string report(const Machine& machine);

// Prints report(examine(folder)) and torch's part on stdout. Always 0: warnings are advice.
int doctor(const std::string& folder = ".");

}  // namespace easydel::cli

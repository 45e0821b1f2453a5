// What the commands of `easydel data` share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/run_data.h"

namespace easydel::cli {

struct DataCommand {
  std::string command = "show";  // its name in errors
  std::string file;
  std::vector<std::string> set;  // "trainer.max_length=512"
  std::string inform;            // its number or name; empty: the first, or all
  std::string row;               // a number from 0, or "file:row"; empty: the first
  std::optional<uint64_t> random;
  std::optional<int64_t> epoch;
  int64_t count = 1;  // of rows to show
  bool packed = false, tokens = false, html = false, json = false;
  std::string report;  // file for all bad rows; empty: none
  std::string output;  // SVG file; empty: none
  std::string steps;   // "100..120"
  std::string cache = "~/.cache/easydel";
  std::string store;  // key of one token store; empty: all
  bool verify = false, remove = false;
};

int run_data_show(const DataCommand& command);
int run_data_check(const DataCommand& command);
int run_data_order(const DataCommand& command);
int run_data_stats(const DataCommand& command);
int run_data_prepare(const DataCommand& command);
int run_data_save(const DataCommand& command);
int run_data_cache(const DataCommand& command);

// UserError: the run is wrong, or has no data.
data::RunData open_run_data(const DataCommand& command);

}  // namespace easydel::cli

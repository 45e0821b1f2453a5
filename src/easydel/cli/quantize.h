// The command `easydel quantize`.
#pragma once

#include <string>
#include <vector>

namespace easydel::cli {

struct QuantizeOptions {
  std::string model, to = "nf4", output, pattern, max_shard_size = "5GiB";
  std::vector<std::string> texts;  // files
};
int run_quantize(const QuantizeOptions& options);

}  // namespace easydel::cli

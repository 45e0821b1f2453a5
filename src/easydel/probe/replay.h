// `probe replay`: a recorded TRL run through the real trainer, with the recorded micro-batches in place of data. For
// comparing with other implementations.
#pragma once

#include <filesystem>
#include <string>

namespace easydel::probe {

struct Replay {
  std::string lines;  // a line of JSON for each optimizer step: step, loss, grad_norm, lr, metrics
  // A line of JSON for each recorded generation: its step and the advantages of its completions.
  std::string generations;
  std::string parameters;  // JSON, per parameter after the last step: shape, sum, abs_sum, l2, first
};

// `root`: where the case's model folders are searched after the folder above the case's group. The UserError names the
// argument of the case that is not built yet.
Replay replay(const std::filesystem::path& case_file, const std::filesystem::path& root);

}  // namespace easydel::probe

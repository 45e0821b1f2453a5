// The kind of order in which a run uses its rows, as a checkpoint's cursor names it. No torch.
#pragma once

#include <string>

#include "easydel/data/mixture_config.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

inline constexpr const char* order_key = "order";  // in RunState::cursor
// One row after the other. Older checkpoints have no name for it.
inline constexpr const char* order_of_files = "files";
inline constexpr const char* shuffled_order = "feistel-1";  // data::Permutation, and blocks of a mixture
// data::WindowedOrder; the name goes on with the windows.
inline constexpr const char* windowed_order = "windows-1";

// `windows`: as data::Dataset::windows() has it.
inline std::string data_order(const TrainerConfig& common, const data::MixtureConfig& mixture,
                              const std::string& windows = "") {
  if (!windows.empty()) return std::string(windowed_order) + " " + windows;
  return common.shuffle_train_dataset || mixture.block_mixture ? shuffled_order : order_of_files;
}

}  // namespace easydel::train

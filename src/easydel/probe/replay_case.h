// A recorded TRL run as this trainer's configuration: every argument that can change a number has its effect or is
// refused by name.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/train/batch_source.h"
#include "easydel/train/method_configs.h"
#include "easydel/train/transformation.h"

namespace easydel::probe {

struct ReplayCase {
  train::TrainerSection trainer;
  train::Transformation tx;
  std::filesystem::path model;
  Value overrides = Value::map();  // of the model's config.json
  // Of a preference method: whether it has a reference at all, and which of the start weights it scales by what.
  std::string reference_scaled;  // a regular expression; empty: none
  double reference_scale = 1;
  std::unique_ptr<train::BatchSource> source;
  std::filesystem::path adapter;  // that is trained, instead of the model; empty: none
};

ReplayCase read_replay_case(const std::filesystem::path& case_file, const std::filesystem::path& root);

// The recorded micro-batches as examples. `preference`: rows are chosen halves and rejected halves.
std::unique_ptr<train::BatchSource> read_recorded_batches(const std::filesystem::path& file, bool preference);

}  // namespace easydel::probe

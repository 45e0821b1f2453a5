// A recorded TRL run as this trainer's configuration: every argument that can change a number has its effect or is
// refused by name.
#pragma once

#include <cstdint>
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
  // The start weights with some of them scaled: a reference or a teacher.
  struct Scaled {
    std::string paths;  // a regular expression; empty: there is no such model
    double factor = 1;
  };
  Scaled reference, teacher;
  std::unique_ptr<train::BatchSource> source;
  std::filesystem::path adapter;  // that is trained, instead of the model; empty: none
};

ReplayCase read_replay_case(const std::filesystem::path& case_file, const std::filesystem::path& root);

// What the rows of recorded micro-batches are.
enum class RecordedRows : uint8_t {
  language,    // input_ids with labels
  pairs,       // chosen halves and rejected halves
  completions  // prompt_ids and completion_ids
};
std::unique_ptr<train::BatchSource> read_recorded_batches(const std::filesystem::path& file, RecordedRows rows);

}  // namespace easydel::probe

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
#include "easydel/probe/replay_groups.h"
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
  std::vector<float> head_weight, head_bias;       // of a class head, row after row; empty: there is none
  std::filesystem::path adapter;                   // that is trained, instead of the model; empty: none
  std::optional<RecordedGenerations> generations;  // of methods that sample
};

ReplayCase read_replay_case(const std::filesystem::path& case_file, const std::filesystem::path& root);

}  // namespace easydel::probe

// The head that a configuration asks for, and building a model with it.
#pragma once

#include <memory>

#include "easydel/models/family.h"

namespace easydel::models {

// By config.json's architectures: a language head, or as transformers' classes of decoders have it a head of classes,
// or none. UserError where the keys that it reads are wrong.
nn::HeadPlan head_plan(const ConfigReader& config, const Family& family);

Task task_of(const ConfigReader& config);

// How many classes a configuration has: as many as id2label names, else num_labels, else 2.
int64_t read_labels(const ConfigReader& config);

// Sets building.head and builds.
std::unique_ptr<Model> build_model(const Family& family, const ConfigReader& config, nn::Building& building);

}  // namespace easydel::models

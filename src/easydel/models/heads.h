// The head that a configuration asks for, and building a model with it.
#pragma once

#include <memory>

#include "easydel/models/family.h"

namespace easydel::models {

// By config.json's architectures: a language head, a classification head as transformers' decoders have it, or none.
// UserError if a key of the head has a wrong value.
nn::HeadPlan head_plan(const ConfigReader& config, const Family& family);

Task task_of(const ConfigReader& config);

// The number of classes: entries of id2label, else num_labels, else 2.
int64_t read_labels(const ConfigReader& config);

// Gives a config.json's head as many classes, named as transformers names new ones.
void set_labels(Value& config, int64_t labels);

// Sets building.head and builds.
std::unique_ptr<Model> build_model(const Family& family, const ConfigReader& config, nn::Building& building);

}  // namespace easydel::models

// Checks before a run, before weights are loaded: the first rows through tokenizer and method, whether models that
// score the same tokens have the same vocabulary, and whether there is memory for the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/run_data.h"
#include "easydel/elarge/elarge.h"
#include "easydel/mesh/mesh.h"
#include "easydel/models/model.h"
#include "easydel/train/trainer.h"

namespace easydel::elarge {

// Refuses keys of the training that do not fit the models (layers, parameters, sizes). `teacher`: null if there is
// none.
void check_fit(const Config& config, const models::CheckedModel& model, const models::CheckedModel* teacher);

// Prepares the first rows of the sources as the run's method would, for a model of `vocabulary` tokens. UserError names
// the row, or a reward that cannot be built. Does nothing else if nothing names data. `trains`: the run will read them
// again, and log then what is worth knowing about them. Returns what is known of the rows.
train::FirstRows check_data(const Config& config, int64_t vocabulary, bool trains);

// The data as the run's method would prepare them, for this model.
data::RunData prepared_data(const Config& config, const models::CheckedModel& model);

// Refuses to train the model in `folder` if its weights, gradients, optimizer state and activations do not fit into the
// memory that is free, cut over the ranks of `mesh`, beside the models that the method uses: `sides` are those that a
// section names; a reference that none names is a copy. Activations are counted from the shapes in config.json and the
// lengths of the first rows; when the model is there, they are measured (train/trainer_memory.cpp).
void check_memory(const Config& config, const models::CheckedModel& model,
                  const std::vector<models::CheckedModel>& sides, const std::filesystem::path& folder,
                  const train::FirstRows& rows, const mesh::Mesh& mesh);

// Refuses a side model that reads other tokens than the model writes. Both vocabularies are embedding rows. The side
// model's folder is the value of section + key.
void check_same_vocabulary(const ModelConfig& model, int64_t model_vocabulary, const ModelConfig& side,
                           const std::string& section, int64_t side_vocabulary,
                           const std::string& key = ".name_or_path");

}  // namespace easydel::elarge

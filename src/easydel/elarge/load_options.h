// How the models of a configuration are loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "easydel/collective/team.h"
#include "easydel/elarge/elarge.h"
#include "easydel/mesh/mesh.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/nn/checkpointing_config.h"

namespace easydel::elarge {

nn::CheckpointPolicy checkpointing_of(const Config& config);

// The model of a section ("model", "teacher_model"), from the hub if it is not a folder.
models::FoundModel found_model(const ModelConfig& model, const std::string& section);
// Warns if the folder of a trained model, or of the adapter over it, had another chat template or other special or end
// tokens when it was trained.
void warn_of_changed_chat(const ModelConfig& model, const text::Tokenizer& tokenizer);
std::filesystem::path folder_of(const ModelConfig& model, const std::string& section);

// UserError for settings that contradict each other or the method.
models::LoadOptions load_options(const Config& config, const ModelConfig& model, const std::string& section,
                                 bool training, std::shared_ptr<const collective::Team> team);

mesh::Mesh mesh_of(const Config& config, int64_t ranks);

}  // namespace easydel::elarge

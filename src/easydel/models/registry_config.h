// EasyDeL's registry as words: the documents' class for a task and a model type. models/family.h builds the models. A
// face: no torch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/models/family_configs.h"
#include "easydel/models/task_config.h"

namespace easydel::models {

// The registry's names of tasks, "causal-language-model" first.
const std::vector<std::string>& task_types();

// "LlamaConfig" for "llama". Throws UserError for an unknown type.
std::string registered_config(std::string_view model_type);
// "LlamaForCausalLM" for "causal-language-model" and "llama". Throws UserError for an unknown task or type.
std::string registered_module(std::string_view task, std::string_view model_type);
// The task that config.json's architectures ask for, what auto-bind does; empty: none that is registered.
std::string bound_task(std::string_view model_type, const std::vector<std::string>& architectures);

// The head that a type of task asks for; nullopt: none that is built, or what config.json says (auto_bind).
std::optional<Task> head_of(TaskType task);

// A family that is not in family_configs.cpp: its configuration, and a class for each of its architectures.
void register_family_config(const FamilyConfig& config);

// Adds an entry at run time, replacing one with the same name. Thread-safe.
void register_config(const std::string& model_type, const std::string& config_class);
void register_module(const std::string& task, const std::string& model_type, const std::string& module_class);

}  // namespace easydel::models

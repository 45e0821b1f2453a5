// Loads models by task: the documents' Auto classes. A name is a folder or a name on the hub; config.json determines
// the family, and the registry says whether it supports the task.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "easydel/models/base_config.h"
#include "easydel/models/model.h"
#include "easydel/models/task_config.h"

namespace easydel::models {

struct FromHub {
  std::string revision = "main";  // branch, tag or commit of a name of the hub
  LoadOptions load = {};
};

// Throws UserError like hub::resolve_model, registered_module and load_model.
std::shared_ptr<Model> load_for_task(TaskType task, std::string_view name, const FromHub& options = {});

template <TaskType task>
struct AutoModel {
  static std::shared_ptr<Model> from_pretrained(std::string_view name, const FromHub& options = {}) {
    return load_for_task(task, name, options);
  }
};

using AutoEasyDeLModel = AutoModel<TaskType::base_module>;
using AutoEasyDeLModelForCausalLM = AutoModel<TaskType::causal_lm>;
using AutoEasyDeLModelForDiffusionLM = AutoModel<TaskType::diffusion_lm>;
using AutoEasyDeLModelForEmbedding = AutoModel<TaskType::embedding>;
using AutoEasyDeLModelForImageTextToText = AutoModel<TaskType::image_text_to_text>;
using AutoEasyDeLModelForSeq2SeqLM = AutoModel<TaskType::seq2seq>;
using AutoEasyDeLModelForSequenceClassification = AutoModel<TaskType::sequence_classification>;
using AutoEasyDeLModelForSpeechSeq2Seq = AutoModel<TaskType::speech_seq2seq>;
using AutoEasyDeLModelForZeroShotImageClassification = AutoModel<TaskType::zero_shot_image_classification>;
using AutoEasyDeLVisionModel = AutoModel<TaskType::vision_module>;
using AutoEasyDeLAnyToAnyModel = AutoModel<TaskType::any_to_any>;

struct AutoEasyDeLConfig {
  // Returns the configuration, and the `overrides` that are not among its keys.
  static std::pair<BaseConfig, Value> from_pretrained(std::string_view name, const Value& overrides = Value::map(),
                                                      const FromPretrained& options = {}) {
    return BaseConfig::from_pretrained(name, overrides, options);
  }
};

}  // namespace easydel::models

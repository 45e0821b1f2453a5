// Loads models by task: the documents' Auto classes. A name is a folder or a name on the hub; config.json determines
// the family, and the registry says whether it supports the task.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "easydel/models/base_config.h"
#include "easydel/models/model.h"

namespace easydel::models {

struct FromHub {
  std::string revision = "main";  // branch, tag or commit of a name of the hub
  LoadOptions load = {};
};

// Throws UserError like hub::resolve_model, registered_module and load_model.
std::shared_ptr<Model> load_for_task(std::string_view task, std::string_view name, const FromHub& options = {});

namespace tasks {
inline constexpr std::string_view causal_lm = "causal-language-model", vision_lm = "vision-language-model",
                                  diffusion_lm = "diffusion-language-model", image_text_to_text = "image-text-to-text",
                                  base_module = "base-module", vision_module = "vision-module",
                                  seq2seq = "sequence-to-sequence", speech_seq2seq = "speech-sequence-to-sequence",
                                  zero_shot_image_classification = "zero-shot-image-classification",
                                  sequence_classification = "sequence-classification", embedding = "embedding",
                                  any_to_any = "any-to-any";
}  // namespace tasks

template <const std::string_view& task>
struct AutoModel {
  static std::shared_ptr<Model> from_pretrained(std::string_view name, const FromHub& options = {}) {
    return load_for_task(task, name, options);
  }
};

using AutoEasyDeLModel = AutoModel<tasks::base_module>;
using AutoEasyDeLModelForCausalLM = AutoModel<tasks::causal_lm>;
using AutoEasyDeLModelForDiffusionLM = AutoModel<tasks::diffusion_lm>;
using AutoEasyDeLModelForEmbedding = AutoModel<tasks::embedding>;
using AutoEasyDeLModelForImageTextToText = AutoModel<tasks::image_text_to_text>;
using AutoEasyDeLModelForSeq2SeqLM = AutoModel<tasks::seq2seq>;
using AutoEasyDeLModelForSequenceClassification = AutoModel<tasks::sequence_classification>;
using AutoEasyDeLModelForSpeechSeq2Seq = AutoModel<tasks::speech_seq2seq>;
using AutoEasyDeLModelForZeroShotImageClassification = AutoModel<tasks::zero_shot_image_classification>;
using AutoEasyDeLVisionModel = AutoModel<tasks::vision_module>;
using AutoEasyDeLAnyToAnyModel = AutoModel<tasks::any_to_any>;

struct AutoEasyDeLConfig {
  // Returns the configuration, and the `overrides` that are not among its keys.
  static std::pair<BaseConfig, Value> from_pretrained(std::string_view name, const Value& overrides = Value::map(),
                                                      const FromPretrained& options = {}) {
    return BaseConfig::from_pretrained(name, overrides, options);
  }
};

}  // namespace easydel::models

// States by what their model is for: EasyDeL's AutoState classes, models/auto_model.h with an optimizer to come.
#pragma once

#include <string_view>

#include "easydel/models/auto_model.h"
#include "easydel/train/state.h"

namespace easydel::train {

template <models::TaskType task>
struct AutoStateOf {
  // At step 0, the model loaded for training, no optimizer until init_tx(). UserError as models::load_for_task.
  static State from_pretrained(std::string_view name, models::FromHub options = {}) {
    options.load.training = true;
    return State::create({.model = models::load_for_task(task, name, options), .load = options.load});
  }
};

using AutoState = AutoStateOf<models::TaskType::base_module>;
using AutoStateForCausalLM = AutoStateOf<models::TaskType::causal_lm>;
using AutoStateForDiffusionLM = AutoStateOf<models::TaskType::diffusion_lm>;
using AutoStateForImageSequenceClassification = AutoStateOf<models::TaskType::sequence_classification>;
using AutoStateForImageTextToText = AutoStateOf<models::TaskType::image_text_to_text>;
using AutoStateForSeq2SeqLM = AutoStateOf<models::TaskType::seq2seq>;
using AutoStateForSpeechSeq2Seq = AutoStateOf<models::TaskType::speech_seq2seq>;
using AutoStateForZeroShotImageClassification = AutoStateOf<models::TaskType::zero_shot_image_classification>;
using AutoStateVisionModel = AutoStateOf<models::TaskType::vision_module>;
using AutoStateAnyToAnyModel = AutoStateOf<models::TaskType::any_to_any>;

}  // namespace easydel::train

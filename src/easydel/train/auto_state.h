// States by what their model is for: EasyDeL's AutoState classes, models/auto_model.h with an optimizer to come.
#pragma once

#include <string_view>

#include "easydel/models/auto_model.h"
#include "easydel/train/state.h"

namespace easydel::train {

template <const std::string_view& task>
struct AutoStateOf {
  // At step 0, the model loaded for training, no optimizer until init_tx(). UserError as models::load_for_task.
  static State from_pretrained(std::string_view name, models::FromHub options = {}) {
    options.load.training = true;
    return State::create({.model = models::load_for_task(task, name, options), .load = options.load});
  }
};

using AutoState = AutoStateOf<models::tasks::base_module>;
using AutoStateForCausalLM = AutoStateOf<models::tasks::causal_lm>;
using AutoStateForDiffusionLM = AutoStateOf<models::tasks::diffusion_lm>;
using AutoStateForImageSequenceClassification = AutoStateOf<models::tasks::sequence_classification>;
using AutoStateForImageTextToText = AutoStateOf<models::tasks::image_text_to_text>;
using AutoStateForSeq2SeqLM = AutoStateOf<models::tasks::seq2seq>;
using AutoStateForSpeechSeq2Seq = AutoStateOf<models::tasks::speech_seq2seq>;
using AutoStateForZeroShotImageClassification = AutoStateOf<models::tasks::zero_shot_image_classification>;
using AutoStateVisionModel = AutoStateOf<models::tasks::vision_module>;
using AutoStateAnyToAnyModel = AutoStateOf<models::tasks::any_to_any>;

}  // namespace easydel::train

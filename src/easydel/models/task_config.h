// What a model is for, by the words of EasyDeL's registry and of the key `model.task`, which has three more. Which of
// them a model of ours has a head for is models::head_of's business. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/choice.h"

namespace easydel::models {

enum class TaskType : uint8_t {
  causal_lm,
  vision_lm,
  diffusion_lm,
  image_text_to_text,
  base_module,
  vision_module,
  seq2seq,
  speech_seq2seq,
  zero_shot_image_classification,
  sequence_classification,
  audio_classification,
  image_classification,
  embedding,
  any_to_any,
  auto_bind,
  // Not of EasyDeL's registry.
  masked_lm,
  token_classification,
  question_answering
};
constexpr auto choices(TaskType) {
  using enum TaskType;
  using config::Choice;
  return std::array{
      Choice{auto_bind, "auto-bind"}.also("auto"),
      Choice{causal_lm, "causal-language-model"}.also("causal-lm").also("lm"),
      Choice{vision_lm, "vision-language-model"}.also("vision-lm").not_built(),
      Choice{diffusion_lm, "diffusion-language-model"}.also("diffusion-lm").not_built(),
      Choice{image_text_to_text, "image-text-to-text"}.not_built(),
      Choice{base_module, "base-module"}.also("base"),
      Choice{vision_module, "vision-module"}.not_built(),
      Choice{seq2seq, "sequence-to-sequence"}.also("seq2seq").not_built(),
      Choice{speech_seq2seq, "speech-sequence-to-sequence"}.also("speech-seq2seq").not_built(),
      Choice{zero_shot_image_classification, "zero-shot-image-classification"}.not_built(),
      Choice{sequence_classification, "sequence-classification"},
      Choice{audio_classification, "audio-classification"}.not_built(),
      Choice{image_classification, "image-classification"}.not_built(),
      Choice{embedding, "embedding"},
      Choice{any_to_any, "any-to-any"}.not_built(),
      Choice{masked_lm, "masked-language-model"}.also("masked-lm"),
      Choice{token_classification, "token-classification"},
      Choice{question_answering, "question-answering"},
  };
}

}  // namespace easydel::models

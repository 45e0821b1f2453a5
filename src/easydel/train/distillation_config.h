// The keys of `trainer_type: distillation`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

enum class HiddenStateLoss : uint8_t { mse };
constexpr auto choices(HiddenStateLoss) {
  using enum HiddenStateLoss;
  return std::array{config::Choice{mse, "mse"}};
}

struct DistillationConfig {
  double temperature = 2;
  double alpha = 0.9;
  std::optional<std::string> dataset_text_field = {};
  bool assistant_only_loss = false;
  std::optional<bool> completion_only_loss = {};
  std::optional<double> hidden_state_loss_weight = {};
  std::optional<std::vector<int64_t>> hidden_state_layers = {};
  HiddenStateLoss hidden_state_loss = HiddenStateLoss::mse;
  std::optional<double> attention_loss_weight = {};
  std::optional<std::vector<int64_t>> attention_layers = {};
  bool attention_normalize = false;
  std::optional<int64_t> logits_chunk_size = {};
  std::optional<double> beta = {};
  bool disable_dropout = false;

  static constexpr MethodFacts facts{
      .rows = {data::RowKind::text, data::RowKind::messages, data::RowKind::prompt_completion},
      .weighs = true,
      .teacher = SideModelUse::required,
      .saves = data::sequence_columns};
  DataKeys data_keys() const { return {.text_field = dataset_text_field}; }

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&DistillationConfig::temperature, &DistillationConfig::alpha,
                    &DistillationConfig::hidden_state_loss_weight, &DistillationConfig::hidden_state_layers,
                    &DistillationConfig::hidden_state_loss, &DistillationConfig::attention_loss_weight,
                    &DistillationConfig::attention_layers, &DistillationConfig::attention_normalize,
                    &DistillationConfig::logits_chunk_size, &DistillationConfig::beta,
                    &DistillationConfig::disable_dropout>();
  }

  static constexpr auto doc =
      "Distillation: learn a teacher's probabilities of each token (arXiv:1503.02531) in addition to the token itself.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::temperature>("Temperature of both models.", above(0)),
        field<&C::alpha>("Weight of the divergence from the teacher, which is multiplied by temperature^2; the "
                         "cross-entropy of the labels has the rest.",
                         between(0, 1)),
        field<&C::dataset_text_field>("Field of a text row; null: mixture.text_target_field."),
        field<&C::assistant_only_loss>("Train only on the assistant's messages."),
        field<&C::completion_only_loss>(
            "Train only on the completion; null: yes for rows with a prompt and a completion."),
        field<&C::hidden_state_loss_weight>("Weight of the hidden state loss; null: off.", at_least(0)),
        field<&C::hidden_state_layers>("Layers of the hidden state loss, the same in both models; -1 is the last one. "
                                       "null: all, of two models with as many layers."),
        field<&C::hidden_state_loss>("Distance of hidden states: the mean squared difference."),
        field<&C::attention_loss_weight>("Weight of the attention loss; null: off.", at_least(0)),
        field<&C::attention_layers>("Layers of the attention loss; as hidden_state_layers."),
        field<&C::attention_normalize>("Scale each query's attention to sum 1, which only matters with sinks."),
        field<&C::logits_chunk_size>("Tokens scored at a time; null: by size.", at_least(1)),
        field<&C::beta>("Learn the generalised Jensen-Shannon divergence alone, as TRL's DistillationTrainer: 0 is the "
                        "forward and 1 the reverse KL divergence. null: alpha mixes the forward one with the labels.",
                        between(0, 1)),
        field<&C::disable_dropout>("Train without dropout."),
    };
  }
  void settle(config::Keys& keys);
  void check_sizes(const ModelSizes& model, const ModelSizes* teacher) const;
};

}  // namespace easydel::train

// The keys of `trainer_type: embedding`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::train {

enum class EmbeddingLoss : uint8_t { infonce, triplet, mnrl };
constexpr auto choices(EmbeddingLoss) {
  using enum EmbeddingLoss;
  return std::array{config::Choice{infonce, "infonce"}, config::Choice{triplet, "triplet"},
                    config::Choice{mnrl, "mnrl"}};
}

struct EmbeddingConfig {
  EmbeddingLoss loss_type = EmbeddingLoss::infonce;
  double temperature = 0.05;
  double margin = 0.2;
  std::string query_field = "query";
  std::string positive_field = "positive";
  std::optional<std::string> negative_field = {};
  std::optional<std::vector<int64_t>> matryoshka_dims = {};
  bool normalize_embeddings = true;
  std::optional<std::string> pooling_strategy = {};
  std::optional<int64_t> dataset_num_proc = {};

  static constexpr auto doc = "Texts that belong together near each other.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::loss_type>("Shape of the loss."),
        field<&C::temperature>("Temperature of similarities.", above(0)),
        field<&C::margin>("Margin of triplet.", at_least(0)),
        field<&C::query_field>("Field with the query."),
        field<&C::positive_field>("Field with what belongs to it."),
        field<&C::negative_field>("Field with what does not; null: the batch's others."),
        field<&C::matryoshka_dims>("Sizes at which beginnings of the vector are learned too (arXiv:2205.13147).",
                                   at_least(1)),
        field<&C::normalize_embeddings>("Scale vectors to length 1."),
        field<&C::pooling_strategy>("How tokens become one vector; null: the model's."),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train

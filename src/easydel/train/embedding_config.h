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

  static constexpr auto doc = "Embeddings: texts that belong together are moved near each other.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::loss_type>("Loss as a function of the margin."),
        field<&C::temperature>("Temperature of similarities.", above(0)),
        field<&C::margin>("Margin of triplet.", at_least(0)),
        field<&C::query_field>("Field with the query."),
        field<&C::positive_field>("Field with the matching text."),
        field<&C::negative_field>("Field with a text that does not match; null: the other texts of the batch."),
        field<&C::matryoshka_dims>("Sizes of prefixes of the vector that are also trained (arXiv:2205.13147).",
                                   at_least(1)),
        field<&C::normalize_embeddings>("Scale vectors to length 1."),
        field<&C::pooling_strategy>("How tokens are pooled into one vector; null: the model's own way."),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train

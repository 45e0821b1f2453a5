// The keys of `trainer_type: embedding`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

enum class EmbeddingLoss : uint8_t { infonce, triplet, mnrl };
constexpr auto choices(EmbeddingLoss) {
  using enum EmbeddingLoss;
  return std::array{config::Choice{infonce, "infonce"}, config::Choice{triplet, "triplet"},
                    config::Choice{mnrl, "mnrl"}};
}

enum class TextPooling : uint8_t { first, mean, last, weighted_mean, max };
constexpr auto choices(TextPooling) {
  using enum TextPooling;
  return std::array{config::Choice{first, "first"}.also("cls"), config::Choice{mean, "mean"},
                    config::Choice{last, "last"}.also("lasttoken"),
                    config::Choice{weighted_mean, "weighted_mean"}.also("weightedmean"), config::Choice{max, "max"}};
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
  std::optional<TextPooling> pooling_strategy = {};
  std::optional<int64_t> dataset_num_proc = {};

  static constexpr MethodFacts facts{.task = models::Task::base, .rows = {data::RowKind::contrast}};
  DataKeys data_keys() const {
    DataKeys out;
    if (query_field != "query") out.names.emplace_back(query_field, "query");
    if (positive_field != "positive") out.names.emplace_back(positive_field, "positive");
    if (negative_field.value_or("negative") != "negative") out.names.emplace_back(*negative_field, "negative");
    return out;
  }

  void check_sizes(const ModelSizes& model, const ModelSizes*) const {
    for (const int64_t size : matryoshka_dims.value_or(std::vector<int64_t>()))
      if (model.hidden > 0 && size > model.hidden)
        refuse("trainer.matryoshka_dims",
               str(size, " is more than the ", model.hidden, " numbers of the model's vectors"),
               "give sizes of prefixes");
  }

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&EmbeddingConfig::temperature, &EmbeddingConfig::margin, &EmbeddingConfig::matryoshka_dims,
                    &EmbeddingConfig::normalize_embeddings, &EmbeddingConfig::pooling_strategy>();
  }

  static constexpr auto doc =
      "Trains embeddings: texts that belong together are moved near each other. The model is saved without a head, in "
      "a "
      "folder that sentence-transformers and `easydel serve` load.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::loss_type>(
            "infonce (also mnrl): the cross-entropy of a query's own text among the texts and negatives of all rows of "
            "the update; triplet: how much nearer than a negative it should be, in squared distances."),
        field<&C::temperature>("Temperature of similarities.", above(0)),
        field<&C::margin>("Margin of triplet.", at_least(0)),
        field<&C::query_field>("Field with the query."),
        field<&C::positive_field>("Field with the matching text."),
        field<&C::negative_field>(
            "Field with a text that does not match, or a list of such; null: negative or negatives, if the rows have "
            "them. Texts of other rows are negatives, too, except of triplet."),
        field<&C::matryoshka_dims>("Sizes of prefixes of the vector; the loss is the mean of theirs "
                                   "(arXiv:2205.13147). Null: the whole vector.",
                                   at_least(1)),
        field<&C::normalize_embeddings>("Scale vectors to length 1."),
        field<&C::pooling_strategy>(
            "How tokens are pooled into one vector; null: as the model's files of sentence-transformers say, else the "
            "last token of a causal model and the mean of another."),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
    };
  }
};

}  // namespace easydel::train

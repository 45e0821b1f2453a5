// The keys of `trainer_type: bco`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/train/pair_keys_config.h"

namespace easydel::train {

struct BcoKeys {
  double beta = 0.1;
  std::optional<std::string> embedding_model = {};
  int64_t prompt_sample_size = 1024;
  double min_density_ratio = 0.5;
  double max_density_ratio = 10;
  bool generate_during_eval = false;
  bool precompute_ref_log_probs = false;
  Value model_init_kwargs = {};
  Value ref_model_init_kwargs = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&BcoKeys::beta, &BcoKeys::embedding_model, &BcoKeys::prompt_sample_size,
                    &BcoKeys::min_density_ratio, &BcoKeys::max_density_ratio, &BcoKeys::precompute_ref_log_probs>();
  }

  static constexpr auto doc = "The classifier.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("How strongly the model is kept near the reference.", above(0)),
        field<&C::embedding_model>(
            "Folder or hub name of a model whose embeddings tell prompts of good and of bad "
            "answers apart: bad answers weigh as much as their prompts are likely among the good "
            "ones. Use it if good and bad answers come from different prompts. null: all weigh 1."),
        field<&C::prompt_sample_size>("Prompts of good and of bad answers from which the density ratio is estimated.",
                                      at_least(1)),
        field<&C::min_density_ratio>("Lower bound of the density ratio.", above(0)),
        field<&C::max_density_ratio>("Upper bound of the density ratio.", above(0)),
        field<&C::generate_during_eval>("Generate completions during evaluation.",
                                        not_built("generating while evaluating")),
        field<&C::precompute_ref_log_probs>(
            "Compute the reference's log-probabilities once before training, then free its memory."),
        field<&C::model_init_kwargs>("More arguments for loading the model.",
                                     not_built("them (see the section loader)")),
        field<&C::ref_model_init_kwargs>("More arguments for loading the reference.",
                                         not_built("them (see the section reference_model)")),
    };
  }
  void settle(config::Keys& keys) const {
    if (min_density_ratio > max_density_ratio)
      keys.refuse("min_density_ratio", str(min_density_ratio, " is above max_density_ratio, ", max_density_ratio));
    if (embedding_model) return;
    for (const char* key : {"prompt_sample_size", "min_density_ratio", "max_density_ratio"})
      if (keys.given(key)) keys.no_effect(key, "without embedding_model");
  }
};

struct BcoConfig {
  BcoKeys own;
  PairKeys pairs;

  static constexpr MethodFacts facts{.rows = {data::RowKind::unpaired, data::RowKind::preference},
                                     .reference = SideModelUse::optional,
                                     .saves = data::answer_columns};

  static std::vector<std::string_view> keys_after_examples() { return keys_after_examples_of<BcoKeys, PairKeys>(); }

  static config::Section section() {
    return config::flat<&BcoConfig::own, &BcoConfig::pairs>("Binary classifier optimisation (arXiv:2404.04656).");
  }
};

}  // namespace easydel::train

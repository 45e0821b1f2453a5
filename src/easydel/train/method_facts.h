// Facts that a training method states about itself, so that no other code compares its name. A face: no torch. The
// config of a method (<trainer_type>_config.h) has them as `static constexpr MethodFacts facts`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/data/packing.h"
#include "easydel/data/row_kinds.h"
#include "easydel/data/saved_columns.h"
#include "easydel/models/family_configs.h"

namespace easydel::train {

// Whether a method uses a model in addition to the one that it trains.
enum class SideModelUse : uint8_t { none, optional, required };

struct MethodFacts {
  models::Task task = models::Task::causal_lm;  // of the model that is trained
  std::optional<int64_t> labels = {};           // classes of its head, if the method fixes them
  data::RowKinds rows = {};                     // kinds of rows that it trains on
  bool packs = false;                           // documents may share a row
  bool samples = false;     // generates its own completions while it trains: Method::source receives a sampler
  bool columns = false;     // rows keep their other fields: data::TypedRow::columns
  bool token_loss = false;  // the keys of trainer.loss_config that shape a token's loss have an effect
  bool weighs = false;      // weights of rows, messages and parts count in its loss; other methods refuse them
  SideModelUse reference = SideModelUse::none;  // the section reference_model; without it, the model as it starts
  SideModelUse teacher = SideModelUse::none;    // teacher_model
  SideModelUse reward = SideModelUse::none;     // reward_model, one of Setting's rewards
  std::span<const data::SavedColumn> saves =
      {};  // what mixture.save writes of its examples; empty: they cannot be saved
};

// Of a model that a method's own keys have to fit; 0: unknown. A config struct implements
// `void check_sizes(const ModelSizes& model, const ModelSizes* teacher) const`, which throws UserError; the second is
// null without a teacher.
struct ModelSizes {
  int64_t layers = 0, hidden = 0;
};

// What a method's own keys say about its data; a config struct implements `DataKeys data_keys() const`.
struct DataKeys {
  std::optional<std::string> text_field = {};  // of a text row; not given: mixture.text_target_field
  bool packing = false;
  std::optional<bool> eval_packing = {};  // not given: as the training data
  std::optional<data::Packing> packing_strategy = {};
  std::vector<std::pair<std::string, std::string>> names = {};  // of fields: (in the rows, the standard one)
};

// A config struct implements `static std::vector<std::string_view> keys_after_examples()`: those of its keys that shape
// no examples, such as numbers of the loss, so that a change of them leaves a token store as it is. A key that is not
// among them counts. A struct without it has none.
template <auto... Members>
std::vector<std::string_view> names_of() {
  return {config::name_of<Members>()...};
}
// Those of a struct's parts.
template <class... Parts>
std::vector<std::string_view> keys_after_examples_of() {
  std::vector<std::string_view> out;
  const auto add = [&out](const std::vector<std::string_view>& keys) {
    out.insert(out.end(), keys.begin(), keys.end());
  };
  (add(Parts::keys_after_examples()), ...);
  return out;
}

}  // namespace easydel::train

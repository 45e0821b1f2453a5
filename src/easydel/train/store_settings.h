// What of a run decides how rows become examples, for the key of its token store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/data/dataset.h"
#include "easydel/data/mixture_config.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/method_configs.h"

namespace easydel::train {

// Why the examples of such a run are not kept in a token store, whatever the mixture says; empty: they may be. `model`:
// null where rows are prepared without one, for a run whose model has this task.
std::string why_not_stored(const TrainerSection& trainer, models::Task task, const models::Model* model);

// nullopt: the run keeps its tokens in memory, because the mixture says so or for the reason above.
// UserError: a file of the tokenizer cannot be read.
std::optional<data::StoreOptions> store_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                const text::Tokenizer& tokenizer, int64_t vocabulary, models::Task task,
                                                const models::Model* model);

// Of a run whose rows are read while it goes on; nullopt: the run does not ask for that.
std::optional<data::StreamOptions> stream_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                  const text::Tokenizer& tokenizer, int64_t vocabulary);

}  // namespace easydel::train

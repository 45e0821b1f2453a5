// What of a run decides how rows become examples, for the key of its token store.
#pragma once

#include <cstdint>

#include "easydel/data/dataset.h"
#include "easydel/data/mixture_config.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/method_configs.h"

namespace easydel::train {

// nullopt: the run keeps its tokens in memory. UserError: a file of the tokenizer cannot be read.
std::optional<data::StoreOptions> store_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                const text::Tokenizer& tokenizer, int64_t vocabulary);

// Of a run whose rows are read while it goes on; nullopt: the run does not ask for that.
std::optional<data::StreamOptions> stream_options(const TrainerSection& trainer, const data::MixtureConfig& mixture,
                                                  const text::Tokenizer& tokenizer, int64_t vocabulary);

}  // namespace easydel::train

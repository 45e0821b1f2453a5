// The data of a run as its training method prepares it, for commands that show, check and count rows. No model is
// needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/saved_columns.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::data {

struct RunData {
  std::optional<DatasetOptions> training, evaluation;  // not given: the run has no such data
  Prepare prepare;                                     // keeps what it needs alive
  Prepare prepare_whole;                               // the same without trainer.max_length
  std::shared_ptr<const text::Tokenizer> tokenizer;
  MixtureConfig mixture;
  SavedExamples saved;             // what of the method's examples can be saved
  bool labels_are_shifted = true;  // Example::labels[i] is the token after token i, else token i itself
  bool packs = false;              // the method can pack rows
  std::optional<int64_t> max_length;
  std::string not_stored;  // why they are not kept in a token store, whatever the mixture says; empty: they may
  std::vector<int32_t> end_tokens;  // that end an answer of the model; empty: it has none, or learns no texts
  int64_t examples_per_update = 1;
  std::optional<int64_t> max_steps_in_epoch;
};

}  // namespace easydel::data

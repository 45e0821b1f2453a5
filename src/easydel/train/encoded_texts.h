// Texts as models that read whole texts get them, with the tokens that the tokenizer adds: for methods that embed,
// classify or fill in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

// Of at most max_length tokens; `cut` grows by those that are left out. UserError if the tokenizer alone adds as many.
text::Encoding encoded(const text::Tokenizer& tokenizer, const std::string& text,
                       const std::optional<std::string>& pair, const TrainerConfig& common, int64_t& cut);

}  // namespace easydel::train

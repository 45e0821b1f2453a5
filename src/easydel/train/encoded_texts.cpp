#include "easydel/train/encoded_texts.h"

#include <utility>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/cut_encoding.h"

namespace easydel::train {

text::Encoding encoded(const text::Tokenizer& tokenizer, const std::string& text,
                       const std::optional<std::string>& pair, const TrainerConfig& common, int64_t& cut) {
  text::Encoding whole = tokenizer.encode_full(text, pair);
  const int64_t most = common.max_length.value_or(0);
  if (most <= 0 || int64_t(whole.ids.size()) <= most) return whole;
  std::optional<text::Encoding> out = text::cut_encoding(whole, most);
  if (!out)
    refuse("trainer.max_length",
           str(most, " is not more than the ", text::added_tokens(whole), " tokens that the tokenizer adds"),
           "raise it");
  cut += int64_t(whole.ids.size() - out->ids.size());
  return std::move(*out);
}

}  // namespace easydel::train

// The normalizers of tokenizer files, which change a text before it is split.
#pragma once

#include <memory>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/normalized_text.h"
#include "easydel/text/tokenizers/regex.h"

namespace easydel::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;
  // True if apply() certainly does not change `text`; saves the copy.
  virtual bool keeps(std::string_view text) const { return text.empty(); }
  virtual bool makes_byte_level() const { return false; }
};

// UserError: an unknown kind, or one that is not built yet.
std::unique_ptr<const Normalizer> make_normalizer(const Value& node);
Pattern make_pattern(const Value& node);  // {"String": ...} or {"Regex": ...}

}  // namespace easydel::text

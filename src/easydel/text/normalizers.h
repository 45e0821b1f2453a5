// The normalizers of tokenizer files: what happens to a text before it is cut.
#pragma once

#include <memory>

#include "easydel/base/document.h"
#include "easydel/text/normalized_text.h"
#include "easydel/text/regex.h"

namespace easydel::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;
  // True where apply() would surely leave `text` as it is: spares the copy.
  virtual bool keeps(std::string_view text) const { return text.empty(); }
  virtual bool makes_byte_level() const { return false; }
};

// UserError for a kind that is unknown or not built yet.
std::unique_ptr<const Normalizer> make_normalizer(const Value& node);
Pattern make_pattern(const Value& node);  // {"String": ...} or {"Regex": ...}

}  // namespace easydel::text

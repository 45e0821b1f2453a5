// Implements `probe constrain`: is a text in a language, can it become one that is, and can the tokens of a vocabulary
// write it under the masks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/constrain/constraint.h"

namespace easydel::probe {

// {"text"} -> {"accepted", "prefix", "blocked_at"}. {"text", "mask": true} -> {"accepted", "prefix", "mask"}: the
// tokens that may come after the text, if it is a prefix, in two hexadecimal digits for eight of them; token 8i + j is
// bit j.
class ConstrainProbe {
 public:
  ConstrainProbe(std::shared_ptr<const text::Tokenizer> tokenizer, const text::constrain::Language& language);
  std::string answer(std::string_view line) const;

 private:
  std::shared_ptr<const text::constrain::Constraint> constraint_;
};

}  // namespace easydel::probe

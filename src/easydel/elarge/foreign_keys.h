// Keys of other training tools (Hugging Face's TrainingArguments and TRL, Axolotl, LLaMA-Factory) where ours belong.
#pragma once

#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::elarge {

// What to write instead of `path`, a key that is not known: our key, with the value of `config` converted. Empty: no
// other tool has a key of this name.
std::string remedy_of_foreign_key(const Value& config, std::string_view path);

}  // namespace easydel::elarge

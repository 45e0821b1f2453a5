// Expands character classes in patterns to the ranges of Hugging Face's tokenizers: the system's Oniguruma may have
// another version of Unicode than that package.
#pragma once

#include <string>
#include <string_view>

namespace easydel::text {

// Replaces \p{..}, \P{..} and \p{^..} of general categories, \w, \W, \d and \D by ranges of code points; leaves
// everything else (scripts, other properties) unchanged.
std::string spelled_out(std::string_view pattern);

}  // namespace easydel::text

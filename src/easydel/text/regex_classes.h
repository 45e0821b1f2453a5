// Classes of characters in patterns, spelled out as the ranges that Hugging Face's tokenizers see: the Oniguruma of the
// system may know an older Unicode than the one in that package.
#pragma once

#include <string>
#include <string_view>

namespace easydel::text {

// `pattern` with \p{..}, \P{..} and \p{^..} of general categories, \w, \W, \d and \D as ranges of code points; all else
// (scripts, other properties) stands as it was.
std::string spelled_out(std::string_view pattern);

}  // namespace easydel::text

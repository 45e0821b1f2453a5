// The scores of a unigram vocabulary, as the tokenizers package reads them from tokenizer.json.
#pragma once

#include <string_view>
#include <vector>

#include "easydel/base/simdjson.h"

namespace easydel::text {

// The double that serde_json makes of a JSON number: its digits as an integer, multiplied or divided by a power of ten.
// For about every fourth score this is off by one unit in the last place, which decides between segmentations of equal
// likelihood.
double serde_number(std::string_view token);

// The scores in model.vocab of the document, which must be a list of pairs.
std::vector<double> read_scores(const simdjson::padded_string& json);

}  // namespace easydel::text

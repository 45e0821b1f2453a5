// The scores of a unigram vocabulary as tokenizers reads them from tokenizer.json.
#pragma once

#include <simdjson.h>

#include <string_view>
#include <vector>

namespace easydel::text {

// The double that serde_json makes of a JSON number: its digits as a whole number, times or over a power of ten. That
// is one unit in the last place off for about every fourth score, and decides between cuts of equal likelihood.
double serde_number(std::string_view token);

// model.vocab of the document, which has been found to be a list of pairs.
std::vector<double> read_scores(const simdjson::padded_string& json);

}  // namespace easydel::text

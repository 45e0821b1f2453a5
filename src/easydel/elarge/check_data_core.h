// Checks before a run, of data against models: the first rows through tokenizer and method, and whether models that
// score the same tokens have the same vocabulary.
#pragma once

#include <cstdint>
#include <string>

#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

// Prepares the first rows of the sources as the run's method would, for a model of `vocabulary` tokens. UserError names
// the row. Does nothing if the method is not built yet, or if nothing names data. `trains`: the run will read them
// again, and log then what is worth knowing about them.
void check_data(const Config& config, int64_t vocabulary, bool trains);

// Refuses a side model that reads other tokens than the trained model writes. Both vocabularies are embedding rows.
void check_same_vocabulary(const ModelConfig& model, int64_t model_vocabulary, const ModelConfig& side,
                           const std::string& section, int64_t side_vocabulary);

}  // namespace easydel::elarge

// Rows of recorded micro-batches: padded lists of numbers to examples without padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/example.h"

namespace easydel::probe {

using RecordedRows = std::vector<std::vector<int64_t>>;

// Empty: the line has no such field.
RecordedRows rows_of(const Value& line, const std::string& name, const std::string& where);
std::vector<int64_t> integers_of(const Value& line, const std::string& name, const std::string& where);
std::vector<float> floats_of(const Value& line, const std::string& name);
// As rows_of; UserError if the line has no such field.
RecordedRows required_rows(const Value& line, const std::string& name, const std::string& where);

// The tokens of a row that are attended (null: all), with shifted labels and the beginnings of its sequences (where a
// position is 0; null: there is one).
data::Example example_of(const std::vector<int64_t>& ids, const std::vector<int64_t>* attended,
                         const std::vector<int64_t>& labels, const std::vector<int64_t>* positions = nullptr);
// The row's ids where `learned` is not 0, elsewhere no label.
std::vector<int64_t> masked_labels(const std::vector<int64_t>& ids, const std::vector<int64_t>& learned);
// Adds the sequences of another example.
void append(data::Example& to, const data::Example& more);

}  // namespace easydel::probe

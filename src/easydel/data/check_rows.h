// Every row of a run's data that is bad, that training would not use whole, or that is worth a warning, grouped by what
// is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "easydel/data/run_data.h"

namespace easydel::data {

struct BadRow {
  std::string inform;  // "mixture.informs[0]"
  std::string where;   // "train.jsonl:17"
  std::string problem, remedy;
  bool warning = false;  // the row is trained as it is
};

// Rows with the same problem; numbers and quoted values may differ.
struct BadRowGroup {
  std::string problem, remedy;  // of the first one
  bool alike = true;            // all have the same problem to the letter
  bool warning = false;
  int64_t count = 0;
  std::vector<BadRow> first;  // at most rows_in_group
};
inline constexpr size_t rows_in_group = 20;

struct CheckedRows {
  int64_t rows = 0, bad = 0, warnings = 0;  // all rows, problems, and warnings beside those
  std::vector<BadRowGroup> groups;          // in the order of their first rows
};

// Reads and prepares everything, training and evaluation data. `each`: called for every problem and warning.
CheckedRows check_rows(const RunData& data, const std::function<void(const BadRow&)>& each);

}  // namespace easydel::data

// Where the rows are that a token store's examples were made of: a store keeps their numbers, and their files are read
// again to find them, without preparing anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/data/dataset.h"

namespace easydel::data {

class StoredOrigins {
 public:
  // `sizes`: examples of each of the options' informs. `rows`: of each example, the number of its row in its inform.
  StoredOrigins(const DatasetOptions& options, const std::vector<int64_t>& sizes, std::vector<int64_t> rows);

  // Of the examples of these numbers. Reads each inform that has some of them up to the last one. UserError: a file
  // cannot be read.
  std::vector<RowOrigin> of(std::span<const int64_t> examples) const;

 private:
  size_t inform_of(int64_t example) const;

  DatasetOptions options_;
  std::vector<int64_t> ends_;  // after each inform, how many examples it and those before it have
  std::vector<int64_t> rows_;
};

}  // namespace easydel::data

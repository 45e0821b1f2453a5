// Which rows have the words of an earlier one, for rows that are read while the run goes on: found in one pass over
// them before the first step, and kept on the disk for later runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "easydel/data/row_set.h"

namespace easydel::data {

// Gives the digest of each row's words in the rows' order; nothing for a row without one.
using RowDigests = std::function<void(const std::function<void(std::optional<uint64_t>)>& sink)>;

struct CopySearch {
  std::filesystem::path folder;  // where the result is kept; empty: nowhere
  std::string key;               // of what decides the digests, for the file's name
  // Rows whose digests are compared together, 16 bytes each. Of more rows the digests are written into the folder, and
  // read as often as there are such parts.
  int64_t rows_together = int64_t{4} << 20;
};

// All but the first of the rows with one digest. `digests` is asked unless the result is there. UserError: what it
// throws; the disk refuses.
RowSet find_copies(int64_t rows, const RowDigests& digests, const CopySearch& search);

}  // namespace easydel::data

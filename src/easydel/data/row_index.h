// Where the rows of a file are, so that a reader can begin at any of them. It is made in one pass that parses nothing,
// and kept on the disk for later runs.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "easydel/base/file_stamp.h"
#include "easydel/data/rows.h"

namespace easydel::data {

struct RowIndex {
  int64_t rows = 0;              // bad ones count
  int64_t largest_group = 0;     // rows between two places, at most
  std::vector<RowPlace> places;  // in their order: about one for each 64 KiB of text; each row group
  files::Stamp stamp = {};       // of the file

  // The last place that is not after the row.
  const RowPlace& before(int64_t row) const;
};

// Whether rows can be gone to: the file is not packed.
bool can_be_indexed(const FileSource& source, const std::filesystem::path& file);

// Reads the file. UserError: it cannot be read or is packed, or it changed meanwhile.
RowIndex make_row_index(const FileSource& source, const std::filesystem::path& file, SampleBy sample_by);

// The indices of a run's files. Names of one file (links) share one.
class RowIndices {
 public:
  // `folder`: where they are kept; empty: nowhere.
  explicit RowIndices(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // UserError as make_row_index.
  std::shared_ptr<const RowIndex> of(const FileSource& source, const std::filesystem::path& file, SampleBy sample_by);

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::string, std::shared_ptr<const RowIndex>>> known_;  // by the names of their files
};

}  // namespace easydel::data

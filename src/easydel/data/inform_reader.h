// The rows of one inform in their order, prepared by the method on all cores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/data/dataset.h"
#include "easydel/data/row_steps.h"
#include "easydel/data/rows.h"
#include "easydel/data/split_parts.h"

namespace easydel::data {

// A row after the method prepared it, or why that failed.
struct PreparedRow {
  TypedRow row;  // with an error perhaps only its place
  Prepared prepared;
  std::shared_ptr<const UserError> error;  // null: prepared
  bool skipped = false;                    // it was not prepared, because InformReader::skip asked for that
  bool ends_file = false;                  // the error is not one row's: the rest of the file was not read
};

// Rows are prepared in groups of so many, by so many threads; 0: one for each core.
struct RowGroups {
  size_t rows = 1000, threads = 0;
};

class InformReader {
 public:
  // All of them must outlive it. `index`: of the inform in the options.
  InformReader(const DatasetOptions& options, size_t index, const Prepare& prepare);

  // Calls `sink` for each row, and for each file that cannot be read to its end, until it returns false. UserError: the
  // files are not there.
  void read(const std::function<bool(PreparedRow&)>& sink);
  // The first rows are read and given, but not prepared.
  void skip(int64_t rows) { skip_ = rows; }
  const std::string& name() const { return name_; }  // "mixture.informs[0]"
  // All files of all parts of the split, in their order. UserError: there are none.
  std::vector<std::filesystem::path> files() const;

  // The parts of read(), for who goes to rows instead of reading all.
  const std::vector<SplitPart>& parts() const { return parts_; }
  std::vector<std::filesystem::path> files_of_part(const SplitPart& part) const;
  const FileSource& source_of(const std::filesystem::path& file) const;  // UserError: no source reads it
  ReadOptions read_options() const;
  // UserError: the part has the files of the part before it, although it names another split.
  void refuse_same_files(const SplitPart& part, const std::vector<std::filesystem::path>& files,
                         const std::vector<std::filesystem::path>& files_before) const;
  // What the inform's steps make of a row of a file. Nothing: they leave it out. For one thread at a time. UserError:
  // the row is bad.
  std::optional<TypedRow> typed(Row row, const std::filesystem::path& file) const;
  const InformConfig& config() const { return inform_; }

 private:
  TypedRow typed_row(Row row, const std::filesystem::path& file) const;
  std::vector<std::string> fields_to_read() const;
  std::vector<std::string> image_columns() const;  // that may hold bytes
  // How many rows the files have, bad ones among them.
  int64_t count(const std::vector<std::filesystem::path>& files) const;

  const InformConfig& inform_;
  const Prepare& prepare_;
  const RemoteOptions& remote_;
  RowGroups groups_;
  bool evaluation_;
  std::string name_;
  RowSteps steps_;
  FieldRules rules_;
  std::vector<SplitPart> parts_;
  int64_t skip_ = 0;
  std::shared_ptr<const LearnRules> learn_;  // null: the inform says nothing
  std::optional<ImageRules> images_;         // not given: the rows have none
};

// `prepare` that also decodes the row's images, so that a broken one is an error; rows of images alone have no example.
Prepare with_images(Prepare prepare);

// Images are read; a model that sees them is not there. UserError "model: ..." if an inform has some.
void refuse_images(const MixtureConfig& mixture);

}  // namespace easydel::data

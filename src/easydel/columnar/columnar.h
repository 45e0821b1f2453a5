// Files of columns, Parquet and Arrow, as rows. What reads and writes them stands on Arrow's libraries and is a library
// of its own, libeasydel_arrow.so, opened when such a file is first asked for (data/columnar.h); this is its face.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::columnar {

enum class Form : uint8_t { parquet, arrow };
enum class Compression : uint8_t { snappy, gzip, zstd, lz4, brotli, none };

// A row's fields in the columns' order, and its number from 1; false: no more are wanted.
using RowSink = std::function<bool(Value fields, int64_t number)>;

struct WriteOptions {
  Form form = Form::parquet;
  Compression compression = Compression::snappy;  // of Parquet alone
  std::vector<std::string> columns;               // each a list of int32
};

// A file being written aside; nothing is at its path until commit().
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void row(std::span<const std::vector<int32_t>> lists) = 0;  // one for each column
  virtual void commit() = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  // Calls `sink` row by row; a few hundred rows are in memory at once. Values are as Hugging Face's `datasets` writes
  // them to JSON: dates, times since 1970 and durations in milliseconds, times of day and decimals as texts; numbers
  // keep all their digits. Only `columns` are read, the others are there as nulls; empty: all are read. An Arrow file
  // is of the file or of the stream form. false: `sink` has had enough. UserError "file: ..." for a file that is broken
  // or of another kind, "file:row: ..." for a value that has no form as a row's field.
  virtual bool read(const std::filesystem::path& file, Form form, std::span<const std::string> columns,
                    const RowSink& sink) = 0;
  // Parquet, or Arrow's stream form as `datasets` saves it. UserError where the disk refuses.
  virtual std::unique_ptr<Writer> write(const std::filesystem::path& file, const WriteOptions& options) = 0;
  virtual std::string version() = 0;  // of Arrow, "26.0.1"
};

}  // namespace easydel::columnar

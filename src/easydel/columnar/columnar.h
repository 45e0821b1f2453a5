// Parquet and Arrow files as rows. The implementation needs Arrow's libraries and is a library of its own,
// libeasydel_arrow.so, opened when such a file is first used (data/columnar.h). This is its interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::columnar {

enum class Form : uint8_t { parquet, arrow };
enum class Compression : uint8_t { snappy, gzip, zstd, lz4, brotli, none };

// Receives a row's fields in the order of the columns, and its number from 1. Returns false to stop.
using RowSink = std::function<bool(Value fields, int64_t number)>;

struct WriteOptions {
  Form form = Form::parquet;
  Compression compression = Compression::snappy;  // Parquet only
  struct Column {
    std::string name;
    bool floats = false;  // each row has a list of float32 there; else of int32
  };
  std::vector<Column> columns;
};

// What the values of a column of rows are, or those in its lists and maps.
struct RowType {
  // null: no value is known. json: values of several kinds, or maps with different keys; they are written as JSON.
  // image: {bytes, path}.
  enum class Kind : uint8_t { null, boolean, integer, number, text, json, image, list, map };

  Kind kind = Kind::null;
  std::vector<std::string> names = {};  // of a map's fields
  std::vector<RowType> parts = {};      // of a map: its fields'; of a list: one, its items'
  bool operator==(const RowType&) const = default;
};

struct RowWriteOptions {
  Form form = Form::parquet;
  Compression compression = Compression::snappy;  // Parquet only
  std::vector<std::pair<std::string, RowType>> columns;
  std::string features;  // JSON, as `datasets` keeps it in a file's metadata
};

// Like Writer, for rows of any values.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // A map; missing fields are null. UserError: a value is not of its column's type.
  virtual void row(const Value& fields) = 0;
  virtual void commit() = 0;
};

using NumberList = std::variant<std::vector<int32_t>, std::vector<float>>;

// Writes to a temporary file; the target path does not exist before commit().
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void row(std::span<const NumberList> lists) = 0;  // one list per column, of its type
  virtual void commit() = 0;
};

// Who asks a cloud's storage, in fsspec's words. Empty key and token: as the cloud's own tools find them.
struct CloudAccount {
  std::string key, secret, token;
  std::string endpoint_url;  // "http://127.0.0.1:9000"; empty: the cloud's own
  std::string region;
  bool anonymous = false;
  int64_t retries = 3;
};

struct CloudFile {
  std::string address;  // "s3://bucket/data/a.jsonl"
  int64_t bytes = 0;
  int64_t changed = 0;  // nanoseconds since 1970
};

// A part of a file, and what the file was after it was read.
struct CloudPart {
  std::string bytes;
  int64_t file_bytes = 0, changed = 0;
};

// A file of a cloud's storage, read in parts. Thread-safe.
class CloudReader {
 public:
  virtual ~CloudReader() = default;
  // The bytes from `from` on; fewer at the end. CloudError.
  virtual CloudPart read(int64_t from, int64_t bytes) = 0;
};

struct CloudError {
  std::string what;
  bool denied = false;  // another try does not help
};

class Library {
 public:
  virtual ~Library() = default;
  // Calls `sink` for each row; a few hundred rows are in memory at once. Values equal what Hugging Face's `datasets`
  // writes as JSON: dates, timestamps and durations in milliseconds, times of day and decimals as strings; numbers keep
  // all digits. Only `columns` are read, the others are null; empty: all. Arrow files may have the file or the stream
  // format. Returns false if `sink` stopped. UserError "file: ...": broken or another format; "file:row: ...": a value
  // that cannot be represented; with `on_bad_row` that error goes there, and the rows after it are read. As many rows
  // as `rows_to_skip` says are passed over, whole row groups and batches without being decoded, and counted down there.
  // Bytes in a column of `raw_columns` are kept as they are in a text's scalar; others must be UTF-8.
  virtual bool read(const std::filesystem::path& file, Form form, std::span<const std::string> columns,
                    const RowSink& sink, const std::function<void(const UserError&)>& on_bad_row = {},
                    int64_t* rows_to_skip = nullptr, std::span<const std::string> raw_columns = {}) = 0;
  // The number of rows of each row group or record batch, without decoding them. UserError as read().
  virtual std::vector<int64_t> group_rows(const std::filesystem::path& file, Form form) = 0;
  // Parquet, or Arrow's stream format as `datasets` saves it. UserError: the disk refuses.
  virtual std::unique_ptr<Writer> write(const std::filesystem::path& file, const WriteOptions& options) = 0;
  virtual std::unique_ptr<RowWriter> write_rows(const std::filesystem::path& file, const RowWriteOptions& options) = 0;
  // The files at an address s3://bucket/name or gs://bucket/name: one file, or all below a folder, by name; empty:
  // there are none. CloudError: no permission, or the storage cannot be reached.
  virtual std::vector<CloudFile> list_cloud(const std::string& address, const CloudAccount& account) = 0;
  // Gives a file's bytes from `from` on to `sink`. CloudError.
  virtual void read_cloud(const std::string& address, const CloudAccount& account, int64_t from,
                          const std::function<void(std::string_view)>& sink) = 0;
  // CloudError: there is no such file, no permission, or the storage cannot be reached.
  virtual std::unique_ptr<CloudReader> open_cloud(const std::string& address, const CloudAccount& account) = 0;
  virtual std::string version() = 0;  // of Arrow, "26.0.1"
};

}  // namespace easydel::columnar

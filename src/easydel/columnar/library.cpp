// The implementation of libeasydel_arrow.so: rows from batches, and the entry point.
#include <arrow/util/config.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/columnar/batches.h"
#include "easydel/columnar/cloud.h"
#include "easydel/columnar/columnar.h"
#include "easydel/columnar/values.h"
#include "easydel/columnar/write.h"
#include "easydel/columnar/write_rows.h"

namespace easydel::columnar {
namespace {

Value row_of(const arrow::RecordBatch& batch, const Batches& batches, int64_t row,
             std::span<const std::string> raw_columns, const std::string& where) {
  Value fields = Value::map();
  for (size_t column = 0; column < batches.names().size(); ++column) {
    const std::string& name = batches.names()[column];
    const int place = batches.places()[column];
    try {
      const Bytes bytes = std::ranges::find(raw_columns, name) != raw_columns.end() ? Bytes::raw : Bytes::text;
      fields.entries.emplace_back(name, place < 0 ? Value{} : value_at(*batch.column(place), row, bytes));
    } catch (const NoValue& error) {
      refuse(where, "field '" + name + "': " + error.what(), "leave it out, or write it in another form");
    }
  }
  return fields;
}

class ArrowLibrary final : public Library {
 public:
  bool read(const std::filesystem::path& file, Form form, std::span<const std::string> columns, const RowSink& sink,
            const std::function<void(const UserError&)>& on_bad_row, int64_t* rows_to_skip,
            std::span<const std::string> raw_columns) override {
    int64_t none = 0;
    int64_t& skip = rows_to_skip ? *rows_to_skip : none;
    Batches batches(file, form, columns, skip);
    while (const auto batch = batches.next())
      for (int64_t row = 0; row < batch->num_rows(); ++row) {
        if (skip > 0) {
          --skip;
          continue;
        }
        const int64_t number = batches.rows_before() + row + 1;
        Value fields;
        try {
          fields = row_of(*batch, batches, row, raw_columns, str(file.string(), ":", number));
        } catch (const UserError& error) {
          if (!on_bad_row) throw;
          on_bad_row(error);
          continue;
        }
        if (!sink(std::move(fields), number)) return false;
      }
    return true;
  }
  std::vector<int64_t> group_rows(const std::filesystem::path& file, Form form) override {
    return rows_of_groups(file, form);
  }
  std::unique_ptr<Writer> write(const std::filesystem::path& file, const WriteOptions& options) override {
    return open_writer(file, options);
  }
  std::unique_ptr<RowWriter> write_rows(const std::filesystem::path& file, const RowWriteOptions& options) override {
    return open_row_writer(file, options);
  }
  std::vector<CloudFile> list_cloud(const std::string& address, const CloudAccount& account) override {
    return list_cloud_files(address, account);
  }
  void read_cloud(const std::string& address, const CloudAccount& account, int64_t from,
                  const std::function<void(std::string_view)>& sink) override {
    read_cloud_file(address, account, from, sink);
  }
  std::unique_ptr<CloudReader> open_cloud(const std::string& address, const CloudAccount& account) override {
    return open_cloud_file(address, account);
  }
  std::string version() override { return ARROW_VERSION_STRING; }
};

}  // namespace
}  // namespace easydel::columnar

extern "C" easydel::columnar::Library* easydel_arrow_entry() {
  static easydel::columnar::ArrowLibrary one;
  return &one;
}

// A Parquet or Arrow file that is written batch by batch through base/files.
#pragma once

#include <arrow/ipc/type_fwd.h>
#include <arrow/type_fwd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "easydel/columnar/columnar.h"

namespace parquet::arrow {
class FileWriter;
}

namespace easydel::columnar {

class Output;

// The path does not exist before commit(). UserError: the disk refuses.
class TableFile {
 public:
  TableFile(const std::filesystem::path& file, std::shared_ptr<arrow::Schema> schema, Form form,
            Compression compression);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;
  // One row group or record batch.
  void write(int64_t rows, std::vector<std::shared_ptr<arrow::Array>> columns);
  void commit();
  // Throws what made the operation fail.
  void check(const arrow::Status& status) const;

 private:
  arrow::Status open(Form form, Compression compression);

  std::filesystem::path path_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<Output> output_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> arrow_;
};

}  // namespace easydel::columnar

#include "easydel/columnar/table_file.h"

#include <arrow/array.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::columnar {

// Our file as an Arrow output stream. Disk errors are stored, because exceptions must not pass through Arrow.
class Output final : public arrow::io::OutputStream {
 public:
  explicit Output(const std::filesystem::path& file) : writer_(file) {}
  arrow::Status Write(const void* data, int64_t bytes) override {
    try {
      writer_.write(data, size_t(bytes));
      return arrow::Status::OK();
    } catch (...) {
      failed_ = std::current_exception();
      return arrow::Status::IOError("the disk refused");
    }
  }
  arrow::Result<int64_t> Tell() const override { return int64_t(writer_.size()); }
  arrow::Status Close() override { return closed_ = true, arrow::Status::OK(); }
  bool closed() const override { return closed_; }
  void rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }
  void commit() { writer_.commit(); }

 private:
  files::Writer writer_;
  std::exception_ptr failed_;
  bool closed_ = false;
};

namespace {

arrow::Compression::type codec_of(Compression compression) {
  switch (compression) {
    case Compression::snappy:
      return arrow::Compression::SNAPPY;
    case Compression::gzip:
      return arrow::Compression::GZIP;
    case Compression::zstd:
      return arrow::Compression::ZSTD;
    case Compression::lz4:
      return arrow::Compression::LZ4;
    case Compression::brotli:
      return arrow::Compression::BROTLI;
    case Compression::none:
      return arrow::Compression::UNCOMPRESSED;
  }
  throw Bug("a compression without a codec");
}

}  // namespace

TableFile::TableFile(const std::filesystem::path& file, std::shared_ptr<arrow::Schema> schema, Form form,
                     Compression compression)
    : path_(file), schema_(std::move(schema)), output_(std::make_shared<Output>(file)) {
  check(open(form, compression));
}

TableFile::~TableFile() = default;

arrow::Status TableFile::open(Form form, Compression compression) {
  if (form == Form::arrow) return arrow::ipc::MakeStreamWriter(output_, schema_).Value(&arrow_);
  const auto properties = parquet::WriterProperties::Builder().compression(codec_of(compression))->build();
  const auto kept = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  return parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), output_, properties, kept)
      .Value(&parquet_);
}

void TableFile::write(int64_t rows, arrow::ArrayVector columns) {
  const auto batch = arrow::RecordBatch::Make(schema_, rows, std::move(columns));
  if (arrow_) return check(arrow_->WriteRecordBatch(*batch));
  std::shared_ptr<arrow::Table> table;
  check(arrow::Table::FromRecordBatches({batch}).Value(&table));
  check(parquet_->WriteTable(*table, rows));
}

void TableFile::commit() {
  check(parquet_ ? parquet_->Close() : arrow_->Close());
  output_->commit();
}

void TableFile::check(const arrow::Status& status) const {
  output_->rethrow();
  if (!status.ok()) refuse(path_.string(), "cannot be written: " + status.message());
}

}  // namespace easydel::columnar

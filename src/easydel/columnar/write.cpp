#include "easydel/columnar/write.h"

#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>

#include <type_traits>
#include <variant>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::columnar {
namespace {

constexpr int64_t numbers_at_a_time = 4 << 20;  // in a row group or record batch

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
  void check(const arrow::Status& status, const std::filesystem::path& file) const {
    if (failed_) std::rethrow_exception(failed_);
    if (!status.ok()) refuse(file.string(), "cannot be written: " + status.message());
  }
  void commit() { writer_.commit(); }

 private:
  files::Writer writer_;
  std::exception_ptr failed_;
  bool closed_ = false;
};

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

class ListWriter final : public Writer {
 public:
  ListWriter(const std::filesystem::path& file, const WriteOptions& options)
      : file_(file), output_(std::make_shared<Output>(file)) {
    arrow::FieldVector fields;
    for (const WriteOptions::Column& column : options.columns) {
      fields.push_back(arrow::field(column.name, arrow::list(column.floats ? arrow::float32() : arrow::int32())));
      std::shared_ptr<arrow::ArrayBuilder> numbers = std::make_shared<arrow::Int32Builder>();
      if (column.floats) numbers = std::make_shared<arrow::FloatBuilder>();
      builders_.push_back(std::make_unique<arrow::ListBuilder>(arrow::default_memory_pool(), numbers));
    }
    schema_ = arrow::schema(std::move(fields));
    output_->check(open(options), file_);
  }

  void row(std::span<const NumberList> lists) override {
    easydel::check(lists.size() == builders_.size(), lists.size(), " lists for ", builders_.size(), " columns");
    for (size_t i = 0; i < lists.size(); ++i) {
      std::visit(
          [&](const auto& numbers) {
            output_->check(add(*builders_[i], numbers), file_);
            numbers_ += int64_t(numbers.size());
          },
          lists[i]);
    }
    ++rows_;
    if (numbers_ >= numbers_at_a_time) output_->check(flush(), file_);
  }

  void commit() override {
    output_->check(flush(), file_);
    output_->check(parquet_ ? parquet_->Close() : arrow_->Close(), file_);
    output_->commit();
  }

 private:
  arrow::Status open(const WriteOptions& options) {
    if (options.form == Form::parquet) {
      const auto properties = parquet::WriterProperties::Builder().compression(codec_of(options.compression))->build();
      const auto kept = parquet::ArrowWriterProperties::Builder().store_schema()->build();
      return parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), output_, properties, kept)
          .Value(&parquet_);
    }
    return arrow::ipc::MakeStreamWriter(output_, schema_).Value(&arrow_);
  }

  template <class T>
  static arrow::Status add(arrow::ListBuilder& builder, const std::vector<T>& numbers) {
    using Builder = std::conditional_t<std::is_same_v<T, float>, arrow::FloatBuilder, arrow::Int32Builder>;
    ARROW_RETURN_NOT_OK(builder.Append());
    return dynamic_cast<Builder&>(*builder.value_builder()).AppendValues(numbers.data(), int64_t(numbers.size()));
  }

  arrow::Status flush() {
    if (rows_ == 0) return arrow::Status::OK();
    arrow::ArrayVector columns;
    for (const auto& builder : builders_) {
      ARROW_ASSIGN_OR_RAISE(columns.emplace_back(), builder->Finish());
    }
    const auto batch = arrow::RecordBatch::Make(schema_, rows_, std::move(columns));
    const int64_t rows = std::exchange(rows_, 0);
    numbers_ = 0;
    if (arrow_) return arrow_->WriteRecordBatch(*batch);
    ARROW_ASSIGN_OR_RAISE(const auto table, arrow::Table::FromRecordBatches({batch}));
    return parquet_->WriteTable(*table, rows);  // as one row group
  }

  std::filesystem::path file_;
  std::shared_ptr<Output> output_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::unique_ptr<arrow::ListBuilder>> builders_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> arrow_;
  int64_t rows_ = 0, numbers_ = 0;
};

}  // namespace

std::unique_ptr<Writer> open_writer(const std::filesystem::path& file, const WriteOptions& options) {
  return std::make_unique<ListWriter>(file, options);
}

}  // namespace easydel::columnar

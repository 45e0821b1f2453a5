#include "easydel/columnar/batches.h"

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/ranged_file.h"

namespace easydel::columnar {
namespace {

constexpr int64_t rows_at_a_time = 256;

// A broken file may request any amount of memory; more than the machine has is never legitimate.
arrow::MemoryPool* pool() {
  static arrow::CappedMemoryPool one(arrow::system_memory_pool(),
                                     int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)});
  return &one;
}

// What reading elsewhere fails with, on its way through Arrow.
class ReadFailure final : public arrow::StatusDetail {
 public:
  explicit ReadFailure(UserError error) : error(std::move(error)) {}
  const char* type_id() const override { return "easydel::ReadFailure"; }
  std::string ToString() const override { return error.headline(); }
  const UserError error;
};

// A file that is read by ranges.
class RangedSource final : public arrow::io::RandomAccessFile {
 public:
  explicit RangedSource(std::shared_ptr<files::RangedFile> file) : file_(std::move(file)) {}
  arrow::Status Close() override { return closed_ = true, arrow::Status::OK(); }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Status Seek(int64_t position) override { return at_ = position, arrow::Status::OK(); }
  arrow::Result<int64_t> GetSize() override { return int64_t(file_->size()); }
  arrow::Result<int64_t> ReadAt(int64_t from, int64_t bytes, void* to) override {
    try {
      return int64_t(file_->read(uint64_t(from), static_cast<char*>(to), size_t(bytes)));
    } catch (const UserError& error) {
      return arrow::Status(arrow::StatusCode::IOError, error.headline(), std::make_shared<ReadFailure>(error));
    }
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t from, int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto out, arrow::AllocateResizableBuffer(bytes, pool()));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(from, bytes, out->mutable_data()));
    ARROW_RETURN_NOT_OK(out->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(out));
  }
  arrow::Result<int64_t> Read(int64_t bytes, void* to) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(at_, bytes, to));
    return at_ += got, got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto out, ReadAt(at_, bytes));
    return at_ += out->size(), out;
  }

 private:
  std::shared_ptr<files::RangedFile> file_;
  int64_t at_ = 0;
  bool closed_ = false;
};

void rethrow_read_failure(const arrow::Status& status) {
  if (const auto* const failure = dynamic_cast<const ReadFailure*>(status.detail().get()))
    throw UserError(failure->error);
}

// Arrow files are mapped, because one batch may be the whole file; Parquet files are read page by page.
arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> opened(const std::filesystem::path& file, Form form) {
  if (auto elsewhere = files::ranged(file)) return std::make_shared<RangedSource>(std::move(elsewhere));
  if (file.extension() == ".gz")
    return std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(files::read_compressed(file)));
  if (form == Form::arrow) return arrow::io::MemoryMappedFile::Open(file.string(), arrow::io::FileMode::READ);
  return arrow::io::ReadableFile::Open(file.string(), pool());
}

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& out) {
  if (field.is_leaf()) out.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, out);
}

// Runs code that calls Arrow and turns every failure, by status or by exception, into one UserError.
template <class Action>
auto guarded(const std::filesystem::path& file, Form form, const Action& action) {
  std::string why;
  try {
    auto result = action();
    if (result.ok()) return std::move(result).MoveValueUnsafe();
    rethrow_read_failure(result.status());
    why = result.status().message();
  } catch (const UserError&) {
    throw;
  } catch (const parquet::ParquetStatusException& error) {
    rethrow_read_failure(error.status());
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  }
  refuse(file.string(), str("cannot be read as ", form == Form::parquet ? "Parquet" : "Arrow", ": ", why),
         "the file is broken or of another kind");
}

arrow::ipc::IpcReadOptions ipc_options() {
  arrow::ipc::IpcReadOptions out;
  out.memory_pool = pool();
  out.use_threads = false;
  return out;
}

arrow::Result<bool> is_ipc_stream(arrow::io::RandomAccessFile& source) {
  ARROW_ASSIGN_OR_RAISE(auto magic, source.ReadAt(0, 6));
  return std::string_view(*magic) != "ARROW1";
}

}  // namespace

Batches::Batches(std::filesystem::path file, Form form, std::span<const std::string> columns, int64_t& rows_to_skip)
    : file_(std::move(file)), form_(form), rows_to_skip_(rows_to_skip) {
  next_ = guarded(file_, form_, [&] { return form == Form::parquet ? open_parquet(columns) : open_arrow(columns); });
}

std::shared_ptr<arrow::RecordBatch> Batches::next() {
  return guarded(file_, form_, [&]() -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(auto batch, next_());
      before_ += std::exchange(rows_, batch ? batch->num_rows() : 0);
      if (batch && rows_ <= rows_to_skip_) {
        rows_to_skip_ -= rows_;
        continue;
      }
      if (batch) ARROW_RETURN_NOT_OK(batch->ValidateFull());
      return batch;
    }
  });
}

// Fills names_ and places_; returns the indices of the fields to read.
std::vector<int> Batches::choose(const arrow::Schema& schema, std::span<const std::string> columns) {
  std::vector<int> chosen;
  for (const std::string& name : schema.field_names()) {
    if (std::ranges::find(names_, name) != names_.end())
      refuse(file_.string(), "two columns are called '" + name + "'", "give each its own name");
    names_.push_back(name);
    const bool selected = columns.empty() || std::ranges::find(columns, name) != columns.end();
    places_.push_back(selected ? int(chosen.size()) : -1);
    if (selected) chosen.push_back(int(names_.size()) - 1);
  }
  return chosen;
}

arrow::Result<Batches::Next> Batches::open_parquet(std::span<const std::string> columns) {
  ARROW_ASSIGN_OR_RAISE(auto source, opened(file_, form_));
  parquet::ReaderProperties properties(pool());
  properties.enable_buffered_stream();
  parquet::ArrowReaderProperties rows(/*use_threads=*/false);
  rows.set_batch_size(rows_at_a_time);
  rows.set_pre_buffer(false);
  rows.set_arrow_extensions_enabled(true);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(source, properties));
  std::unique_ptr<parquet::arrow::FileReader> made;
  ARROW_RETURN_NOT_OK(builder.memory_pool(pool())->properties(rows)->Build(&made));
  const std::shared_ptr<parquet::arrow::FileReader> reader = std::move(made);
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  std::vector<int> leaves, groups;
  for (const int field : choose(*schema, columns)) add_leaves(reader->manifest().schema_fields[size_t(field)], leaves);
  int first = 0;
  for (; first < reader->num_row_groups(); ++first) {
    const int64_t rows = reader->parquet_reader()->metadata()->RowGroup(first)->num_rows();
    if (rows > rows_to_skip_) break;
    rows_to_skip_ -= rows, before_ += rows;
  }
  for (int group = first; group < reader->num_row_groups(); ++group) groups.push_back(group);
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatchReader> batches,
                        reader->GetRecordBatchReader(groups, leaves));
  return [reader, batches] { return batches->Next(); };
}

arrow::Result<Batches::Next> Batches::open_arrow(std::span<const std::string> columns) {
  ARROW_ASSIGN_OR_RAISE(auto source, opened(file_, form_));
  arrow::ipc::IpcReadOptions options = ipc_options();
  ARROW_ASSIGN_OR_RAISE(const bool stream, is_ipc_stream(*source));
  // The schema lists the columns; the selection must be passed when the reader is opened.
  std::shared_ptr<arrow::RecordBatchReader> batches;
  if (stream) {
    ARROW_ASSIGN_OR_RAISE(batches, arrow::ipc::RecordBatchStreamReader::Open(source, options));
    options.included_fields = choose(*batches->schema(), columns);
    ARROW_RETURN_NOT_OK(source->Seek(0));
    ARROW_ASSIGN_OR_RAISE(batches, arrow::ipc::RecordBatchStreamReader::Open(source, options));
    return [source, batches] { return batches->Next(); };
  }
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(source, options));
  options.included_fields = choose(*reader->schema(), columns);
  ARROW_ASSIGN_OR_RAISE(reader, arrow::ipc::RecordBatchFileReader::Open(source, options));
  return [source, reader, i = 0]() mutable -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    if (i == reader->num_record_batches()) return nullptr;
    return reader->ReadRecordBatch(i++);
  };
}

std::vector<int64_t> rows_of_groups(const std::filesystem::path& file, Form form) {
  return guarded(file, form, [&]() -> arrow::Result<std::vector<int64_t>> {
    std::vector<int64_t> out;
    ARROW_ASSIGN_OR_RAISE(auto source, opened(file, form));
    if (form == Form::parquet) {
      const auto reader = parquet::ParquetFileReader::Open(source, parquet::ReaderProperties(pool()));
      for (int group = 0; group < reader->metadata()->num_row_groups(); ++group)
        out.push_back(reader->metadata()->RowGroup(group)->num_rows());
      return out;
    }
    ARROW_ASSIGN_OR_RAISE(const bool stream, is_ipc_stream(*source));
    if (!stream) {
      ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(source, ipc_options()));
      for (int i = 0; i < reader->num_record_batches(); ++i) {
        ARROW_ASSIGN_OR_RAISE(const auto batch, reader->ReadRecordBatch(i));  // mapped: nothing is copied
        out.push_back(batch->num_rows());
      }
      return out;
    }
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(source, ipc_options()));
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(const auto batch, reader->Next());
      if (!batch) return out;
      out.push_back(batch->num_rows());
    }
  });
}

}  // namespace easydel::columnar

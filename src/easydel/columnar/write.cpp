#include "easydel/columnar/write.h"

#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/type.h>

#include <optional>
#include <type_traits>
#include <variant>

#include "easydel/base/error.h"
#include "easydel/columnar/table_file.h"

namespace easydel::columnar {
namespace {

constexpr int64_t numbers_at_a_time = 4 << 20;  // in a row group or record batch

class ListWriter final : public Writer {
 public:
  ListWriter(const std::filesystem::path& file, const WriteOptions& options) {
    arrow::FieldVector fields;
    for (const WriteOptions::Column& column : options.columns) {
      fields.push_back(arrow::field(column.name, arrow::list(column.floats ? arrow::float32() : arrow::int32())));
      std::shared_ptr<arrow::ArrayBuilder> numbers = std::make_shared<arrow::Int32Builder>();
      if (column.floats) numbers = std::make_shared<arrow::FloatBuilder>();
      builders_.push_back(std::make_unique<arrow::ListBuilder>(arrow::default_memory_pool(), numbers));
    }
    file_.emplace(file, arrow::schema(std::move(fields)), options.form, options.compression);
  }

  void row(std::span<const NumberList> lists) override {
    easydel::check(lists.size() == builders_.size(), lists.size(), " lists for ", builders_.size(), " columns");
    for (size_t i = 0; i < lists.size(); ++i) {
      std::visit(
          [&](const auto& numbers) {
            file_->check(add(*builders_[i], numbers));
            numbers_ += int64_t(numbers.size());
          },
          lists[i]);
    }
    ++rows_;
    if (numbers_ >= numbers_at_a_time) flush();
  }

  void commit() override {
    flush();
    file_->commit();
  }

 private:
  template <class T>
  static arrow::Status add(arrow::ListBuilder& builder, const std::vector<T>& numbers) {
    using Builder = std::conditional_t<std::is_same_v<T, float>, arrow::FloatBuilder, arrow::Int32Builder>;
    ARROW_RETURN_NOT_OK(builder.Append());
    return dynamic_cast<Builder&>(*builder.value_builder()).AppendValues(numbers.data(), int64_t(numbers.size()));
  }

  void flush() {
    if (rows_ == 0) return;
    arrow::ArrayVector columns;
    for (const auto& builder : builders_) file_->check(builder->Finish(&columns.emplace_back()));
    file_->write(std::exchange(rows_, 0), std::move(columns));
    numbers_ = 0;
  }

  std::optional<TableFile> file_;
  std::vector<std::unique_ptr<arrow::ListBuilder>> builders_;
  int64_t rows_ = 0, numbers_ = 0;
};

}  // namespace

std::unique_ptr<Writer> open_writer(const std::filesystem::path& file, const WriteOptions& options) {
  return std::make_unique<ListWriter>(file, options);
}

}  // namespace easydel::columnar

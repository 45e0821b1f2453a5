#include "easydel/columnar/write_rows.h"

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/builder.h>
#include <arrow/extension/json.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include <charconv>

#include "easydel/base/error.h"
#include "easydel/columnar/table_file.h"

namespace easydel::columnar {
namespace {

// Of a row group or record batch. As `datasets` has them: more rows would be decoded to go to one of them.
constexpr int64_t rows_at_a_time = 1000, bytes_at_a_time = 16 << 20;

// `stored`: JSON as the text that it is stored as.
std::shared_ptr<arrow::DataType> arrow_type(const RowType& type, bool stored) {
  using Kind = RowType::Kind;
  switch (type.kind) {
    case Kind::null:
      return arrow::null();
    case Kind::boolean:
      return arrow::boolean();
    case Kind::integer:
      return arrow::int64();
    case Kind::number:
      return arrow::float64();
    case Kind::text:
      return arrow::utf8();
    case Kind::json:
      return stored ? arrow::utf8() : arrow::extension::json(arrow::utf8());
    case Kind::image:
      return arrow::struct_({arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
    case Kind::list:
      return arrow::list(arrow_type(type.parts.at(0), stored));
    case Kind::map: {
      arrow::FieldVector fields;
      for (size_t i = 0; i < type.parts.size(); ++i)
        fields.push_back(arrow::field(type.names[i], arrow_type(type.parts[i], stored)));
      return arrow::struct_(fields);
    }
  }
  throw Bug("a kind of values without an Arrow type");
}

// The same values under another type of the same storage.
std::shared_ptr<arrow::ArrayData> retyped(const arrow::ArrayData& data, const std::shared_ptr<arrow::DataType>& type) {
  std::shared_ptr<arrow::ArrayData> out = data.Copy();
  out->type = type;
  for (size_t i = 0; i < out->child_data.size(); ++i)
    out->child_data[i] = retyped(*data.child_data[i], type->field(int(i))->type());
  return out;
}

class ValueWriter final : public RowWriter {
 public:
  ValueWriter(const std::filesystem::path& file, const RowWriteOptions& options)
      : path_(file), columns_(options.columns) {
    arrow::FieldVector fields;
    for (const auto& [name, type] : columns_) {
      fields.push_back(arrow::field(name, arrow_type(type, false)));
      std::unique_ptr<arrow::ArrayBuilder>& builder = builders_.emplace_back();
      check(arrow::MakeBuilder(arrow::default_memory_pool(), arrow_type(type, true), &builder).ok(),
            "an Arrow type that cannot be built");
    }
    schema_ = arrow::schema(std::move(fields), arrow::key_value_metadata({"huggingface"}, {options.features}));
    file_.emplace(file, schema_, options.form, options.compression);
  }

  void row(const Value& fields) override {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Value* const value = fields.find(columns_[i].first);
      file_->check(add(*builders_[i], columns_[i].second, value ? *value : Value{}));
    }
    if (++rows_ >= rows_at_a_time || bytes_ >= bytes_at_a_time) flush();
  }

  void commit() override {
    flush();
    file_->commit();
  }

 private:
  template <class Builder>
  arrow::Status add_text(arrow::ArrayBuilder& builder, const std::string& text) {
    bytes_ += int64_t(text.size());
    return static_cast<Builder&>(builder).Append(text);
  }

  template <class Builder, class Number>
  arrow::Status add_number(arrow::ArrayBuilder& builder, const std::optional<Number>& number) {
    if (!number) return refused();
    bytes_ += int64_t(sizeof(Number));
    return static_cast<Builder&>(builder).Append(*number);
  }

  arrow::Status add(arrow::ArrayBuilder& builder, const RowType& type, const Value& value) {
    using Kind = RowType::Kind;
    if (value.is_null()) return builder.AppendNull();
    switch (type.kind) {
      case Kind::null:
        return refused();
      case Kind::boolean:
        return add_number<arrow::BooleanBuilder>(builder, value.as_bool());
      case Kind::integer:
        return add_number<arrow::Int64Builder>(builder, value.as_int());
      case Kind::number:
        return add_number<arrow::DoubleBuilder>(builder, value.as_double());
      case Kind::text:
        return value.is_text() ? add_text<arrow::StringBuilder>(builder, value.scalar) : refused();
      case Kind::json:
        return add_text<arrow::StringBuilder>(builder, to_json(value));
      case Kind::image: {
        auto& image = static_cast<arrow::StructBuilder&>(builder);
        const Value *const bytes = value.find("bytes"), *const path = value.find("path");
        if (!bytes || !bytes->is_text()) return refused();
        ARROW_RETURN_NOT_OK(image.Append());
        ARROW_RETURN_NOT_OK(add_text<arrow::BinaryBuilder>(*image.field_builder(0), bytes->scalar));
        if (!path || path->is_null()) return image.field_builder(1)->AppendNull();
        return add_text<arrow::StringBuilder>(*image.field_builder(1), path->scalar);
      }
      case Kind::list: {
        if (!value.is_list()) return refused();
        auto& list = static_cast<arrow::ListBuilder&>(builder);
        ARROW_RETURN_NOT_OK(list.Append());
        for (const Value& item : value.items) ARROW_RETURN_NOT_OK(add(*list.value_builder(), type.parts[0], item));
        return arrow::Status::OK();
      }
      case Kind::map: {
        if (!value.is_map() || value.entries.size() != type.names.size()) return refused();
        auto& map = static_cast<arrow::StructBuilder&>(builder);
        ARROW_RETURN_NOT_OK(map.Append());
        for (size_t i = 0; i < type.names.size(); ++i) {
          const Value* const part = value.find(type.names[i]);
          if (!part) return refused();
          ARROW_RETURN_NOT_OK(add(*map.field_builder(int(i)), type.parts[i], *part));
        }
        return arrow::Status::OK();
      }
    }
    throw Bug("a kind of values that is not written");
  }

  [[noreturn]] arrow::Status refused() const {
    refuse(path_.string(), "a row has a value of another type than when the rows were first read",
           "do not change the files while they are read");
  }

  void flush() {
    if (rows_ == 0) return;
    arrow::ArrayVector columns;
    for (size_t i = 0; i < builders_.size(); ++i) {
      std::shared_ptr<arrow::Array> column;
      file_->check(builders_[i]->Finish(&column));
      columns.push_back(arrow::MakeArray(retyped(*column->data(), schema_->field(int(i))->type())));
    }
    file_->write(std::exchange(rows_, 0), std::move(columns));
    bytes_ = 0;
  }

  std::filesystem::path path_;
  std::vector<std::pair<std::string, RowType>> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::optional<TableFile> file_;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders_;
  int64_t rows_ = 0, bytes_ = 0;
};

}  // namespace

std::unique_ptr<RowWriter> open_row_writer(const std::filesystem::path& file, const RowWriteOptions& options) {
  return std::make_unique<ValueWriter>(file, options);
}

}  // namespace easydel::columnar

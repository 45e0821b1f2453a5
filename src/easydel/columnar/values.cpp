#include "easydel/columnar/values.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/util/float16.h>
#include <arrow/util/ree_util.h>
#include <arrow/util/utf8.h>

#include <cstdio>

#include "easydel/base/error.h"

namespace easydel::columnar {
namespace {

template <class Array>
const Array& as(const arrow::Array& array) {
  return static_cast<const Array&>(array);
}

template <class Array>
Value integer_at(const arrow::Array& array, int64_t i) {
  return Value::integer(int64_t{as<Array>(array).Value(i)});
}

template <class Array>
Value text_at(const arrow::Array& array, int64_t i) {
  return Value::text(std::string(as<Array>(array).GetView(i)));
}

template <class Array>
Value bytes_at(const arrow::Array& array, int64_t i, Bytes kept) {
  const std::string_view bytes = as<Array>(array).GetView(i);
  if (kept == Bytes::raw) return Value::text(std::string(bytes));
  arrow::util::InitializeUTF8();
  if (!arrow::util::ValidateUTF8(bytes)) throw NoValue("bytes that are not UTF-8 text");
  return Value::text(std::string(bytes));
}

template <class Array>
Value decimal_at(const arrow::Array& array, int64_t i) {
  return Value::text(as<Array>(array).FormatValue(i));
}

Value unsigned_at(uint64_t number) {
  Value out = Value::integer(0);
  out.scalar = std::to_string(number);
  return out;
}

int64_t floor_of(int64_t count, int64_t units) { return count / units - (count % units < 0); }

Value milliseconds(int64_t count, arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      if (__builtin_mul_overflow(count, int64_t{1000}, &count)) throw NoValue("a time that milliseconds cannot hold");
      return Value::integer(count);
    case arrow::TimeUnit::MILLI:
      return Value::integer(count);
    case arrow::TimeUnit::MICRO:
      return Value::integer(floor_of(count, 1000));
    case arrow::TimeUnit::NANO:
      return Value::integer(floor_of(count, 1'000'000));
  }
  throw NoValue("a time of an unknown unit");
}

// "03:04:05", with six more digits if there are microseconds.
Value time_of_day(int64_t count, arrow::TimeUnit::type unit) {
  static constexpr int64_t in_a_second[] = {1, 1000, 1'000'000, 1'000'000'000};
  const int64_t units = in_a_second[unit], seconds = count / units, micros = count % units * 1'000'000 / units;
  if (count < 0 || seconds >= 24 * 3600) throw NoValue("a time of day outside of the day");
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%02d:%02d:%02d", int(seconds / 3600), int(seconds / 60 % 60),
                                   int(seconds % 60));
  if (micros) std::snprintf(text + length, sizeof text - size_t(length), ".%06d", int(micros));
  return Value::text(text);
}

Value list_of(const arrow::Array& values, int64_t begin, int64_t length, Bytes kept) {
  Value out = Value::list();
  out.items.reserve(size_t(length));
  for (int64_t k = begin; k < begin + length; ++k) out.items.push_back(value_at(values, k, kept));
  return out;
}

template <class Array>
Value list_at(const arrow::Array& array, int64_t i, Bytes kept) {
  const auto& lists = as<Array>(array);
  return list_of(*lists.values(), lists.value_offset(i), lists.value_length(i), kept);
}

Value struct_at(const arrow::StructArray& array, int64_t i, Bytes kept) {
  Value out = Value::map();
  for (int field = 0; field < array.num_fields(); ++field)
    out.set(array.struct_type()->field(field)->name(), value_at(*array.field(field), i, kept));
  return out;
}

// A map if the keys are strings, otherwise the list of pairs.
Value map_at(const arrow::MapArray& array, int64_t i, Bytes kept) {
  const int64_t begin = array.value_offset(i), end = begin + array.value_length(i);
  const bool named = arrow::is_base_binary_like(array.keys()->type_id());
  Value out = named ? Value::map() : Value::list();
  for (int64_t k = begin; k < end; ++k) {
    Value key = value_at(*array.keys(), k, kept), item = value_at(*array.items(), k, kept);
    if (named) {
      out.set(key.scalar, std::move(item));
    } else {
      Value pair = Value::list();
      pair.items = {std::move(key), std::move(item)};
      out.items.push_back(std::move(pair));
    }
  }
  return out;
}

Value union_at(const arrow::UnionArray& array, int64_t i, Bytes kept) {
  const bool dense = array.mode() == arrow::UnionMode::DENSE;
  return value_at(*array.field(array.child_id(i)), dense ? as<arrow::DenseUnionArray>(array).value_offset(i) : i, kept);
}

Value extension_at(const arrow::ExtensionArray& array, int64_t i, Bytes kept) {
  Value stored = value_at(*array.storage(), i, kept);
  // The type in which `datasets` stores fields of varying structure.
  if (array.extension_type()->extension_name() != "arrow.json" || !stored.is_text()) return stored;
  try {
    return parse_json(stored.scalar);
  } catch (const UserError&) {
    throw NoValue("a text that is not JSON");
  }
}

}  // namespace

Value value_at(const arrow::Array& array, int64_t i, Bytes kept) {
  using arrow::Type;
  if (array.IsNull(i)) return {};
  switch (array.type_id()) {
    case Type::NA:
      return {};
    case Type::BOOL:
      return Value::boolean(as<arrow::BooleanArray>(array).Value(i));
    case Type::INT8:
      return integer_at<arrow::Int8Array>(array, i);
    case Type::INT16:
      return integer_at<arrow::Int16Array>(array, i);
    case Type::INT32:
      return integer_at<arrow::Int32Array>(array, i);
    case Type::INT64:
      return integer_at<arrow::Int64Array>(array, i);
    case Type::UINT8:
      return integer_at<arrow::UInt8Array>(array, i);
    case Type::UINT16:
      return integer_at<arrow::UInt16Array>(array, i);
    case Type::UINT32:
      return integer_at<arrow::UInt32Array>(array, i);
    case Type::UINT64:
      return unsigned_at(as<arrow::UInt64Array>(array).Value(i));
    case Type::HALF_FLOAT:
      return Value::number(double(arrow::util::Float16::FromBits(as<arrow::HalfFloatArray>(array).Value(i)).ToFloat()));
    case Type::FLOAT:
      return Value::number(double(as<arrow::FloatArray>(array).Value(i)));
    case Type::DOUBLE:
      return Value::number(as<arrow::DoubleArray>(array).Value(i));
    case Type::DECIMAL32:
      return decimal_at<arrow::Decimal32Array>(array, i);
    case Type::DECIMAL64:
      return decimal_at<arrow::Decimal64Array>(array, i);
    case Type::DECIMAL128:
      return decimal_at<arrow::Decimal128Array>(array, i);
    case Type::DECIMAL256:
      return decimal_at<arrow::Decimal256Array>(array, i);
    case Type::STRING:
      return text_at<arrow::StringArray>(array, i);
    case Type::LARGE_STRING:
      return text_at<arrow::LargeStringArray>(array, i);
    case Type::STRING_VIEW:
      return text_at<arrow::StringViewArray>(array, i);
    case Type::BINARY:
      return bytes_at<arrow::BinaryArray>(array, i, kept);
    case Type::LARGE_BINARY:
      return bytes_at<arrow::LargeBinaryArray>(array, i, kept);
    case Type::BINARY_VIEW:
      return bytes_at<arrow::BinaryViewArray>(array, i, kept);
    case Type::FIXED_SIZE_BINARY:
      return bytes_at<arrow::FixedSizeBinaryArray>(array, i, kept);
    case Type::DATE32:
      return Value::integer(int64_t{as<arrow::Date32Array>(array).Value(i)} * 86'400'000);
    case Type::DATE64:
      return integer_at<arrow::Date64Array>(array, i);
    case Type::TIMESTAMP:
      return milliseconds(as<arrow::TimestampArray>(array).Value(i),
                          static_cast<const arrow::TimestampType&>(*array.type()).unit());
    case Type::DURATION:
      return milliseconds(as<arrow::DurationArray>(array).Value(i),
                          static_cast<const arrow::DurationType&>(*array.type()).unit());
    case Type::TIME32:
      return time_of_day(as<arrow::Time32Array>(array).Value(i),
                         static_cast<const arrow::Time32Type&>(*array.type()).unit());
    case Type::TIME64:
      return time_of_day(as<arrow::Time64Array>(array).Value(i),
                         static_cast<const arrow::Time64Type&>(*array.type()).unit());
    case Type::LIST:
      return list_at<arrow::ListArray>(array, i, kept);
    case Type::LARGE_LIST:
      return list_at<arrow::LargeListArray>(array, i, kept);
    case Type::LIST_VIEW:
      return list_at<arrow::ListViewArray>(array, i, kept);
    case Type::LARGE_LIST_VIEW:
      return list_at<arrow::LargeListViewArray>(array, i, kept);
    case Type::FIXED_SIZE_LIST:
      return list_at<arrow::FixedSizeListArray>(array, i, kept);
    case Type::STRUCT:
      return struct_at(as<arrow::StructArray>(array), i, kept);
    case Type::MAP:
      return map_at(as<arrow::MapArray>(array), i, kept);
    case Type::SPARSE_UNION:
    case Type::DENSE_UNION:
      return union_at(as<arrow::UnionArray>(array), i, kept);
    case Type::DICTIONARY: {
      const auto& coded = as<arrow::DictionaryArray>(array);
      return value_at(*coded.dictionary(), coded.GetValueIndex(i), kept);
    }
    case Type::RUN_END_ENCODED: {
      const auto& runs = as<arrow::RunEndEncodedArray>(array);
      return value_at(*runs.values(),
                      arrow::ree_util::FindPhysicalIndex(arrow::ArraySpan(*array.data()), i, array.offset()), kept);
    }
    case Type::EXTENSION:
      return extension_at(as<arrow::ExtensionArray>(array), i, kept);
    default:
      throw NoValue("the type " + array.type()->ToString() + " has no form in a row");
  }
}

}  // namespace easydel::columnar

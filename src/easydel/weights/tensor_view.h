// A tensor in a file of any format, and the interface of such files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/weights/dtype.h"
#include "easydel/weights/ggml.h"

namespace easydel::weights {

struct TensorView {
  DType dtype = DType::f32;                       // of the values
  std::vector<int64_t> shape;                     // row-major; {} is a scalar
  std::span<const std::byte> bytes;               // usually in the mapping; may be unaligned
  std::shared_ptr<const void> owner;              // keeps the bytes alive
  std::optional<GgmlType> blocks = std::nullopt;  // set: `bytes` are blocks of this type, not values
  int64_t elements() const;
  std::string_view type_name() const;  // "BF16", "Q4_K"
};

// A tensor as it lies in its file, which may hold the rows of queries and keys in another order.
struct StoredRows {
  TensorView view;
  int64_t heads = 0;  // over 0: each head's rows are neighboring pairs instead of two halves

  int64_t row_of(int64_t row) const;  // where `view` holds this row of the tensor
};

// Thread-safe to read.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual std::vector<std::string> names() const = 0;  // sorted
  virtual bool has(std::string_view name) const = 0;
  virtual TensorView at(std::string_view name) const = 0;  // UserError: no such tensor
  // Only shape and type are valid; the bytes may differ from those of at().
  virtual TensorView info(std::string_view name) const { return at(name); }
  // The tensor of at() without a copy of rows that lie in another order.
  virtual StoredRows stored(std::string_view name) const { return {at(name)}; }
};

// The name quoted and escaped for a one-line message.
std::string in_quotes(std::string_view name);

// The product of the sizes and `unit`; nullopt on overflow or for a negative size.
std::optional<uint64_t> bytes_of_shape(std::span<const int64_t> shape, uint64_t unit);

}  // namespace easydel::weights

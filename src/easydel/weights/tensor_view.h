// A tensor in a file, whatever the file's format, and a file of such tensors.
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
  std::vector<int64_t> shape;                     // row major; {} is a scalar
  std::span<const std::byte> bytes;               // mostly into the mapping, 1-byte aligned as far as a format promises
  std::shared_ptr<const void> owner;              // keeps the bytes alive
  std::optional<GgmlType> blocks = std::nullopt;  // `bytes` are such blocks, not values
  int64_t elements() const;
  std::string_view type_name() const;  // "BF16", "Q4_K"
};

// Thread-safe to read.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual std::vector<std::string> names() const = 0;  // sorted
  virtual bool has(std::string_view name) const = 0;
  virtual TensorView at(std::string_view name) const = 0;  // UserError where there is no such tensor
  // Its shape and type alone: the bytes may be others than at() makes.
  virtual TensorView info(std::string_view name) const { return at(name); }
};

// A name as it may stand in a message of one line, in quotes.
std::string in_quotes(std::string_view name);

// The product of the sizes times `unit`; nullopt where it does not fit, or a size is below zero.
std::optional<uint64_t> bytes_of_shape(std::span<const int64_t> shape, uint64_t unit);

}  // namespace easydel::weights

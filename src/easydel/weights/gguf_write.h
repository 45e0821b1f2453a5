// Writes GGUF files, version 3: keys in the given order, then tensors aligned to 32 bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/weights/ggml.h"
#include "easydel/weights/gguf_metadata.h"

namespace easydel::weights {

class GgufWriter {
 public:
  // Bug if the key already exists.
  void text(std::string_view key, std::string_view value);
  void integer(std::string_view key, int64_t value);  // as uint32; Bug if it does not fit
  void number(std::string_view key, double value);    // as fp32
  void flag(std::string_view key, bool value);
  void texts(std::string_view key, std::span<const std::string> values);
  void integers(std::string_view key, std::span<const int32_t> values);
  void numbers(std::string_view key, std::span<const float> values);
  // Copies a key of another file, if it has it.
  void copy(const GgufMetadata& from, std::string_view key);
  bool has(std::string_view key) const;

  // `write` is called once, in the given order, and must pass exactly the tensor's bytes to the sink.
  using Sink = std::function<void(const void*, size_t)>;
  void tensor(std::string name, GgmlType type, const std::vector<int64_t>& shape,
              std::function<void(const Sink&)> write);

  void write(const std::filesystem::path& path) const;  // atomic: the file is complete or absent

 private:
  struct Tensor {
    std::string name;
    GgmlType type;
    std::vector<int64_t> shape;
    uint64_t bytes;
    std::function<void(const Sink&)> write;
  };
  void begin(std::string_view key, GgufMetadata::Type type);
  void begin_list(std::string_view key, GgufMetadata::Type element, size_t count);
  template <class T>
  void put(T value) {
    keys_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text);

  std::string keys_;  // encoded
  std::vector<std::string> known_;
  std::vector<Tensor> tensors_;
};

// Writes only the tokenizer of a GGUF file, as a file without tensors.
void write_vocabulary(const GgufMetadata& from, const std::filesystem::path& path);

}  // namespace easydel::weights

#include "easydel/weights/gguf_write.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {
namespace {

using Type = GgufMetadata::Type;
constexpr uint64_t alignment = 32;

uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

void GgufWriter::put_text(std::string_view text) {
  put(uint64_t(text.size()));
  keys_ += text;
}

void GgufWriter::begin(std::string_view key, Type type) {
  check(!has(key), "GGUF key ", key, " is written twice");
  known_.emplace_back(key);
  put_text(key);
  put(uint32_t(type));
}

void GgufWriter::begin_list(std::string_view key, Type element, size_t count) {
  begin(key, Type::array);
  put(uint32_t(element));
  put(uint64_t(count));
}

bool GgufWriter::has(std::string_view key) const { return std::ranges::find(known_, key) != known_.end(); }

void GgufWriter::text(std::string_view key, std::string_view value) {
  begin(key, Type::string);
  put_text(value);
}

void GgufWriter::integer(std::string_view key, int64_t value) {
  check(value >= 0 && value <= UINT32_MAX, "GGUF key ", key, ": ", value, " does not fit");
  begin(key, Type::u32);
  put(uint32_t(value));
}

void GgufWriter::number(std::string_view key, double value) {
  begin(key, Type::f32);
  put(float(value));
}

void GgufWriter::flag(std::string_view key, bool value) {
  begin(key, Type::boolean);
  put(uint8_t(value));
}

void GgufWriter::texts(std::string_view key, std::span<const std::string> values) {
  begin_list(key, Type::string, values.size());
  for (const std::string& value : values) put_text(value);
}

void GgufWriter::integers(std::string_view key, std::span<const int32_t> values) {
  begin_list(key, Type::i32, values.size());
  for (const int32_t value : values) put(value);
}

void GgufWriter::numbers(std::string_view key, std::span<const float> values) {
  begin_list(key, Type::f32, values.size());
  for (const float value : values) put(value);
}

void GgufWriter::copy(const GgufMetadata& from, std::string_view key) {
  const std::string_view raw = from.raw(key);
  if (raw.empty()) return;
  check(!has(key), "GGUF key ", key, " is written twice");
  known_.emplace_back(key);
  put_text(key);
  keys_ += raw;
}

void GgufWriter::tensor(std::string name, GgmlType type, const std::vector<int64_t>& shape,
                        std::function<void(const Sink&)> write) {
  const GgmlForm& form = form_of(type);
  const auto elements = bytes_of_shape(shape, 1);
  check(elements && !shape.empty() && shape.back() % form.elements == 0, "tensor ", name,
        " has no rows of whole blocks");
  tensors_.push_back(
      {std::move(name), type, shape, *elements / uint64_t(form.elements) * form.bytes, std::move(write)});
}

void GgufWriter::write(const std::filesystem::path& path) const {
  GgufWriter head;
  head.keys_ = "GGUF";
  head.put(uint32_t{3});
  head.put(uint64_t(tensors_.size()));
  head.put(uint64_t(known_.size()));
  head.keys_ += keys_;
  uint64_t at = 0;
  for (const Tensor& tensor : tensors_) {
    head.put_text(tensor.name);
    head.put(uint32_t(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;) head.put(uint64_t(tensor.shape[d]));
    head.put(uint32_t(tensor.type));
    head.put(at);
    at += aligned(tensor.bytes);
  }
  files::Writer file(path);
  const std::string zeros(alignment, '\0');
  const auto pad = [&](uint64_t bytes) { file.write(std::string_view(zeros).substr(0, aligned(bytes) - bytes)); };
  file.write(head.keys_);
  if (!tensors_.empty()) pad(head.keys_.size());
  for (const Tensor& tensor : tensors_) {
    uint64_t given = 0;
    tensor.write([&](const void* data, size_t bytes) {
      given += bytes;
      check(given <= tensor.bytes, "tensor ", tensor.name, " gives more than its ", tensor.bytes, " bytes");
      file.write(data, bytes);
    });
    check(given == tensor.bytes, "tensor ", tensor.name, " gives ", given, " of its ", tensor.bytes, " bytes");
    pad(tensor.bytes);
  }
  file.commit();
}

void write_vocabulary(const GgufMetadata& from, const std::filesystem::path& path) {
  GgufWriter out;
  out.copy(from, "general.architecture");
  out.copy(from, "general.name");
  for (const std::string_view key : from.keys())
    if (key.starts_with("tokenizer.")) out.copy(from, key);
  out.write(path);
}

}  // namespace easydel::weights

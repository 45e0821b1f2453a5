// A model's folder once more, with other values of one tensor.
#pragma once

#include <span>
#include <string>

#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::test {

// Copies a folder with model.safetensors and changes the sign of all values of a tensor in fp32. Empty: of none.
inline void copy_with_changed_weights(const fs::path& model, const fs::path& to, const std::string& tensor) {
  fs::create_directories(to.parent_path());
  fs::copy(model, to, fs::copy_options::recursive);
  if (tensor.empty()) return;
  std::string bytes = read_file(to / "model.safetensors");
  const weights::Header header = weights::parse_header(std::as_bytes(std::span(bytes)), "model.safetensors");
  const auto& entry = header.tensors.at(tensor);
  constexpr uint64_t size = sizeof(float);
  for (uint64_t at = entry.begin; at < entry.end; at += size) bytes[header.data_begin + at + size - 1] ^= char(0x80);
  write_file(to / "model.safetensors", bytes);
}

}  // namespace easydel::test

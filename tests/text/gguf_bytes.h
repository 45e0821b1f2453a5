// GGUF files that tests write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::text {

// A GGUF file of these values, version 3.
struct GgufBytes {
  std::string body;
  uint64_t count = 0;
  template <class T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string string(const std::string& text) { return raw<uint64_t>(text.size()) + text; }
  GgufBytes& add(const std::string& key, uint32_t type, const std::string& value) {
    body += string(key) + raw(type) + value;
    ++count;
    return *this;
  }
  GgufBytes& text(const std::string& key, const std::string& value) { return add(key, 8, string(value)); }
  GgufBytes& id(const std::string& key, uint32_t value) { return add(key, 4, raw(value)); }
  GgufBytes& flag(const std::string& key, bool value) { return add(key, 7, raw<uint8_t>(value)); }
  GgufBytes& texts(const std::string& key, const std::vector<std::string>& list) {
    std::string value = raw<uint32_t>(8) + raw<uint64_t>(list.size());
    for (const std::string& one : list) value += string(one);
    return add(key, 9, value);
  }
  template <class T>
  GgufBytes& list(const std::string& key, uint32_t type, const std::vector<T>& values) {
    std::string value = raw(type) + raw<uint64_t>(values.size());
    for (T one : values) value += raw(one);
    return add(key, 9, value);
  }
  std::string file() const { return "GGUF" + raw<uint32_t>(3) + raw<uint64_t>(0) + raw(count) + body; }
};

}  // namespace easydel::text

// Reads the wire format of protocol buffers: fields in file order, every length checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::text {

class Protobuf {
 public:
  Protobuf(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;           // varint, or the bits of a fixed-width number
    std::string_view bytes = {};  // of a string or a nested message
    float as_float() const {
      auto bits = uint32_t(value);
      float out;
      std::memcpy(&out, &bits, sizeof out);
      return out;
    }
  };

  // Reads the next field; false: end. UserError: the bytes are not a message.
  bool next(Field& field) {
    if (rest_.empty()) return false;
    uint64_t tag = varint();
    field = Field{uint32_t(tag >> 3)};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2: {
        uint64_t length = varint();
        if (length > rest_.size()) broken();
        field.bytes = rest_.substr(0, length);
        rest_.remove_prefix(length);
        break;
      }
      case 5:
        field.value = fixed(4);
        break;
      default:
        broken();
    }
    if (field.number == 0) broken();
    return true;
  }

 private:
  [[noreturn]] void broken() const {
    refuse(name_, "is not a SentencePiece model: a field of it is truncated or of no known kind",
           "fetch the tokenizer again");
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) broken();
      auto byte = uint8_t(rest_.front());
      rest_.remove_prefix(1);
      out |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return out;
    }
    broken();
  }
  uint64_t fixed(size_t size) {
    if (rest_.size() < size) broken();
    uint64_t out = 0;
    std::memcpy(&out, rest_.data(), size);
    rest_.remove_prefix(size);
    return out;
  }
  std::string_view rest_;
  const std::string& name_;
};

}  // namespace easydel::text

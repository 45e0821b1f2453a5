// Numbers and texts as the bytes of a message between ranks: little-endian, sizes before contents, and a SHA-256 of all
// of it at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace easydel::esurge {

class MessageWriter {
 public:
  // `kind` names what the message is; a reader asks for the same.
  explicit MessageWriter(std::string_view kind) { text(kind); }

  template <class T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void text(std::string_view text) {
    number(uint64_t(text.size()));
    out_ += text;
  }
  // The message with its digest. The writer is empty afterwards.
  std::string finish();

 private:
  std::string out_;
};

// Refers to the bytes that it reads. Every member throws UserError "message between ranks: ..." if they are damaged.
class MessageReader {
 public:
  // Checks the digest first, so what follows was written by a MessageWriter, whatever the network did.
  MessageReader(std::string_view bytes, std::string_view kind);

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // A number in [first, last].
  int64_t between(int64_t first, int64_t last, const char* what);
  // A part of the bytes.
  std::string_view text() { return take(size_t(between(0, int64_t(left_.size()), "a text's size"))); }
  // A number of things that take at least `bytes` each.
  size_t count(size_t bytes);
  // Refuses what is left.
  void finish() const;

 private:
  std::string_view take(size_t size);
  std::string_view left_;
};

// Whether a message says that it is of this kind. Its digest is not checked.
bool is_message(std::string_view bytes, std::string_view kind);

// Throws the UserError of a damaged message.
[[noreturn]] void refuse_message(const std::string& problem);

}  // namespace easydel::esurge

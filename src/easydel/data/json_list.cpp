#include "easydel/data/json_list.h"

#include <string>
#include <vector>

namespace easydel::data {
namespace {

constexpr size_t piece_bytes = size_t{1} << 18;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Takes the file byte by byte and cuts it into elements.
class Cutter {
 public:
  explicit Cutter(const ElementSink& element) : element_(element) {}
  // The first byte is that of an element.
  Cutter(const ElementSink& element, int64_t byte, int64_t line)
      : element_(element), state_(State::following), before_(byte), line_(line) {}

  // False: enough.
  bool take(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (state_ == State::inside) {
        const size_t end = end_of_element(bytes, i);
        text_.append(bytes.substr(i, end - i));
        if (text_.size() > max_row_bytes) throw ListError{begin_line_, "an element is longer than 256 MiB"};
        if (end == bytes.size()) {
          before_ += int64_t(bytes.size());
          return true;
        }
        if (!give()) return false;
        i = end;  // a comma or the list's end
      }
      const char c = bytes[i];
      line_ += c == '\n';
      if (!is_blank(c) && !between(c, before_ + int64_t(i))) return false;
    }
    before_ += int64_t(bytes.size());
    return true;
  }

  void finish() const {
    if (state_ != State::ended) throw ListError{line_, "the list does not end: a ']' is missing"};
  }

 private:
  enum class State : uint8_t { before, first, inside, after, following, ended };

  bool give() {
    while (!text_.empty() && is_blank(text_.back())) text_.pop_back();
    state_ = State::after;
    depth_ = 0;
    const bool more = element_(text_, begin_line_, begin_byte_);
    text_.clear();
    return more;
  }

  // A byte outside of the elements that is not white space.
  bool between(char c, int64_t byte) {
    switch (state_) {
      case State::before:
        if (c != '[') throw ListError{line_, "a list begins with '['"};
        state_ = State::first;
        return true;
      case State::first:
      case State::following:
        if (c == ']' && state_ == State::first) return end();
        if (c == ']') throw ListError{line_, "a comma is followed by the end of the list"};
        if (c == ',') throw ListError{line_, "a comma without an element before it"};
        state_ = State::inside;
        begin_line_ = line_, begin_byte_ = byte;
        text_ = c;
        in_text_ = c == '"';
        depth_ = c == '{' || c == '[';
        return true;
      case State::after:
        if (c == ']') return end();
        if (c != ',') throw ListError{line_, "a comma is missing between two elements"};
        state_ = State::following;
        return true;
      case State::inside:
      case State::ended:
        break;
    }
    throw ListError{line_, "the list is followed by something else"};
  }

  bool end() {
    state_ = State::ended;
    return true;
  }

  // Index of the byte after the element, which is a comma or a bracket outside of it; bytes.size(): it goes on.
  size_t end_of_element(std::string_view bytes, size_t from) {
    for (size_t i = from; i < bytes.size(); ++i) {
      const char c = bytes[i];
      line_ += c == '\n';
      if (in_text_) {
        if (escaped_)
          escaped_ = false;
        else if (c == '\\')
          escaped_ = true;
        else if (c == '"')
          in_text_ = false;
      } else if (c == '"') {
        in_text_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (depth_ == 0 && (c == ',' || c == ']')) {
        return i;
      } else if (c == '}' || c == ']') {
        --depth_;
      }
    }
    return bytes.size();
  }

  const ElementSink& element_;
  State state_ = State::before;
  std::string text_;
  int64_t before_ = 0;  // bytes of the file before those that take() has got
  int64_t line_ = 1, begin_line_ = 1, begin_byte_ = 0, depth_ = 0;
  bool in_text_ = false, escaped_ = false;
};

bool cut(ByteStream& stream, Cutter& cutter) {
  std::vector<char> piece(piece_bytes);
  for (;;) {
    const size_t got = stream.read(piece.data(), piece.size());
    if (got == 0) break;
    if (!cutter.take({piece.data(), got})) return false;
  }
  cutter.finish();
  return true;
}

}  // namespace

bool for_each_element(ByteStream& stream, const ElementSink& element) {
  Cutter cutter(element);
  return cut(stream, cutter);
}

bool for_each_element_from(ByteStream& stream, int64_t byte, int64_t line, const ElementSink& element) {
  Cutter cutter(element, byte, line);
  return cut(stream, cutter);
}

}  // namespace easydel::data

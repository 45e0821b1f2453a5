// Errors: a UserError is for the user, a Bug is for the developers.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace easydel {

// A place in a file that the user wrote or named.
struct FilePlace {
  std::string file;  // empty: not in a file
  int line = 0;      // from 1; 0: the whole file
  int column = 0;    // from 1, in bytes; 0: the whole line
};

// The subject of an error: a key, a file, an option. Converts from a plain name; a place is added if it is known.
struct Where {
  Where();
  Where(const char* name);
  Where(std::string name);
  Where(FilePlace place, std::string name = "");
  Where(const Where&);
  Where(Where&&) noexcept;
  Where& operator=(const Where&);
  Where& operator=(Where&&) noexcept;
  ~Where();

  Where below(std::string_view key) const;  // "config.json: rope_scaling" -> "config.json: rope_scaling.factor"
  std::string text() const;                 // "run.yaml:3:14: trainer.beta"

  std::string name;  // "trainer.beta"; empty: the place says it all
  FilePlace place = {};
};

// An error that the user can fix: a file, a key, a request. Exit status 2. what() is the whole text:
//   file:line:column: where: problem
//       remedy
// Empty parts are left out. Programs read the fields; no code parses the text.
class UserError : public std::runtime_error {
 public:
  UserError(const Where& at, std::string problem, std::string remedy = "");

  std::string headline() const;  // the text without the remedy

  const std::string where;    // the key, option or file: "esurge.page_size"
  const std::string problem;  // with the user's values: "'abc' is not a number"
  const std::string remedy;   // what would work; may be empty
  const FilePlace place;

 protected:
  UserError(const UserError& fields, const std::string& whole_text);
};

// A broken promise inside the program; the text names file and line. Exit status 70.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {

void append(std::string& out, long long value);
void append(std::string& out, unsigned long long value);
void append(std::string& out, double value);  // as "%g"
void append(std::string& out, const void* value, void (*write)(std::ostream& stream, const void* value));

template <class T>
void append_value(std::string& out, const void* value) {
  const T& typed = *static_cast<const T*>(value);
  if constexpr (std::is_same_v<T, char>)
    out += typed;
  else if constexpr (std::is_floating_point_v<T>)
    append(out, double(typed));
  else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T> && sizeof(T) > 1)
    append(out, static_cast<unsigned long long>(typed));
  else if constexpr (std::is_integral_v<T>)
    append(out, static_cast<long long>(typed));
  else
    append(out, value, [](std::ostream& stream, const void* other) { stream << *static_cast<const T*>(other); });
}

// One part of a text without its type, so that a call of str() or check() costs little to compile. It refers to the
// value.
struct TextPart {
  template <class T>
  TextPart(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>)
      text = value;
    else
      other = &value, append_other = append_value<T>;
  }
  std::string_view text;
  const void* other = nullptr;  // what is not text
  void (*append_other)(std::string& out, const void* value) = nullptr;
};

std::string joined(std::initializer_list<TextPart> parts);

}  // namespace detail

// The parts, one after the other, as a stream would print them; small integers are numbers too.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::joined({detail::TextPart(parts)...});
}

// Throws UserError(at, problem, remedy).
[[noreturn]] void refuse(const Where& at, const std::string& problem, const std::string& remedy = "");

// Captures where check() was called, which a function with a parameter pack cannot.
struct Condition {
  template <class T>
  Condition(const T& value, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : holds(bool(value)), file(file), line(line) {}
  bool holds;
  const char* file;
  int line;
};

namespace detail {
[[noreturn]] void broken(const Condition& condition, std::initializer_list<TextPart> parts);
}

// check(q.dim() == 3, "attention: q has ", q.dim(), " dimensions; it needs 3");
// The text is built only on failure.
template <class... Parts>
void check(Condition condition, const Parts&... parts) {
  if (!condition.holds) [[unlikely]]
    detail::broken(condition, {detail::TextPart(parts)...});
}

}  // namespace easydel

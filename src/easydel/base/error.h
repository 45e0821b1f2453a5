// How things go wrong: a UserError is for the person at the keyboard, a Bug is for us.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace easydel {

// Something the user can mend: a file, a key, a request. The text follows the house form
//   where: what is wrong, with the user's values
//       what would work
// Exit status 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A broken promise inside the program; the text names file and line. Exit status 70.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// Throws UserError("where: what\n    remedy"); an empty remedy leaves the second line out.
[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& remedy = "");

// Knows where check() was called, which a function with a parameter pack could not.
struct Condition {
  template <class T>
  Condition(const T& value, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : holds(static_cast<bool>(value)), file(file), line(line) {}
  bool holds;
  const char* file;
  int line;
};

// check(q.dim() == 3, "attention: q has ", q.dim(), " dimensions; it needs 3");
// The text is built only on failure.
template <class... Parts>
void check(Condition condition, const Parts&... parts) {
  if (!condition.holds) throw Bug(easydel::str(condition.file, ":", condition.line, ": ", parts...));
}

}  // namespace easydel

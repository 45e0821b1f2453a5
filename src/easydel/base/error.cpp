#include "easydel/base/error.h"

#include <charconv>
#include <cstdio>
#include <sstream>

namespace easydel {
namespace {

std::string text_of(const FilePlace& place) {
  std::string out = place.file;
  if (place.line > 0) out += str(":", place.line);
  if (place.line > 0 && place.column > 0) out += str(":", place.column);
  return out;
}

std::string headline_of(const Where& at, const std::string& problem) {
  const std::string where = at.text();
  return where.empty() ? problem : where + ": " + problem;
}

std::string text_of(const Where& at, const std::string& problem, const std::string& remedy) {
  const std::string headline = headline_of(at, problem);
  return remedy.empty() ? headline : headline + "\n    " + remedy;
}

template <class T>
void append_integer(std::string& out, T value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

}  // namespace

Where::Where() = default;
Where::Where(const char* name) : name(name) {}
Where::Where(std::string name) : name(std::move(name)) {}
Where::Where(FilePlace place, std::string name) : name(std::move(name)), place(std::move(place)) {}
Where::Where(const Where&) = default;
Where::Where(Where&&) noexcept = default;
Where& Where::operator=(const Where&) = default;
Where& Where::operator=(Where&&) noexcept = default;
Where::~Where() = default;

Where Where::below(std::string_view key) const {
  return {place, name.empty() ? std::string(key) : str(name, ".", key)};
}

std::string Where::text() const {
  const std::string file = text_of(place);
  return file.empty() || name.empty() ? file + name : file + ": " + name;
}

UserError::UserError(const Where& at, std::string problem, std::string remedy)
    : std::runtime_error(text_of(at, problem, remedy)),
      where(at.name),
      problem(std::move(problem)),
      remedy(std::move(remedy)),
      place(at.place) {}

UserError::UserError(const UserError& fields, const std::string& whole_text)
    : std::runtime_error(whole_text),
      where(fields.where),
      problem(fields.problem),
      remedy(fields.remedy),
      place(fields.place) {}

std::string UserError::headline() const { return headline_of({place, where}, problem); }

void refuse(const Where& at, const std::string& problem, const std::string& remedy) {
  throw UserError(at, problem, remedy);
}

namespace detail {

void append(std::string& out, long long value) { append_integer(out, value); }
void append(std::string& out, unsigned long long value) { append_integer(out, value); }

void append(std::string& out, double value) {
  char digits[32];
  out.append(digits, size_t(std::snprintf(digits, sizeof(digits), "%g", value)));
}

void append(std::string& out, const void* value, void (*write)(std::ostream& stream, const void* value)) {
  std::ostringstream stream;
  write(stream, value);
  out += stream.view();
}

std::string joined(std::initializer_list<TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts)
    if (part.append_other)
      part.append_other(out, part.other);
    else
      out += part.text;
  return out;
}

void broken(const Condition& condition, std::initializer_list<TextPart> parts) {
  throw Bug(str(condition.file, ":", condition.line, ": ", joined(parts)));
}

}  // namespace detail
}  // namespace easydel

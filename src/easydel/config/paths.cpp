#include "easydel/config/paths.h"

#include <cctype>
#include <cstdlib>

namespace easydel::config {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The length of $NAME or ${NAME} at `at`; 0: the dollar stands for itself.
size_t variable_at(std::string_view path, size_t at, std::string& name) {
  const bool braced = path.substr(at + 1).starts_with('{');
  const size_t begin = at + 1 + braced;
  size_t end = begin;
  while (end < path.size() && is_name_character(path[end])) ++end;
  name = path.substr(begin, end - begin);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return 0;
  if (braced && (end == path.size() || path[end] != '}')) return 0;
  return end + braced - at;
}

}  // namespace

void expand_path(std::string& path, Keys& keys, std::string_view key) {
  if (path.empty()) return keys.refuse(key, "is empty", "give a path, or leave the key out");
  std::string out;
  size_t at = 0;
  if (path[0] == '~') {
    const char* const home = std::getenv("HOME");
    if (path.size() > 1 && path[1] != '/')
      return keys.refuse(key, "'" + path + "': the home folders of other users are not known",
                         "write the whole path, or ./" + path + " for a name that begins so");
    if (!home || !*home)
      return keys.refuse(key, "'" + path + "': the environment variable HOME is not set", "write the whole path");
    out = home;
    at = 1;
  }
  while (at < path.size()) {
    std::string name;
    const size_t length = path[at] == '$' ? variable_at(path, at, name) : 0;
    if (length == 0) {
      out += path[at++];
      continue;
    }
    const char* const value = std::getenv(name.c_str());
    if (!value)
      return keys.refuse(key, "'" + path + "': the environment variable " + name + " is not set",
                         "set it, or write the whole path");
    if (!*value)
      return keys.refuse(key, "'" + path + "': the environment variable " + name + " is empty",
                         "set it, or write the whole path");
    out += value;
    at += length;
  }
  path = std::move(out);
}

void expand_path(std::optional<std::string>& path, Keys& keys, std::string_view key) {
  if (path) expand_path(*path, keys, key);
}

}  // namespace easydel::config

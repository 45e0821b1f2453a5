// Reads a body as a request, and what is wrong with one as text.
#pragma once

#include <string>
#include <vector>

#include "easydel/server/request_fields.h"

namespace easydel::test {

template <class T>
T read(const std::string& body, bool strict = false) {
  std::vector<std::string> passed_over;
  return server::read_request<T>(server::read_value(body), {.strict = strict}, passed_over);
}

// All problems, as "path: what" a line.
template <class T>
std::string wrong(const std::string& body, bool strict = false) {
  try {
    read<T>(body, strict);
  } catch (const config::ConfigError& error) {
    std::string out;
    for (const UserError& one : error.problems) out += one.where + ": " + one.problem + "\n";
    return out;
  } catch (const UserError& error) {
    return error.where + ": " + error.problem + "\n";
  }
  return "";
}

}  // namespace easydel::test

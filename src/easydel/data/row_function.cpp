#include "easydel/data/row_function.h"

#include <map>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

struct Registered {
  RowFunction function;
  std::filesystem::path library;
};

std::map<std::string, Registered>& functions() {
  static std::map<std::string, Registered> all;
  return all;
}

}  // namespace

void register_row_function(const std::string& name, RowFunction function, const std::filesystem::path& library) {
  check(function != nullptr, "a row function that is null");
  if (is_row_template(name)) refuse("plug-in", "the row function '" + name + "' has the name of a template's file");
  if (!functions().emplace(name, Registered{std::move(function), library}).second)
    refuse("plug-in", "the row function '" + name + "' is there already", "give it another name");
}

const RowFunction* find_row_function(const std::string& name) {
  const auto found = functions().find(name);
  return found == functions().end() ? nullptr : &found->second.function;
}

std::string row_function_remedy() {
  std::vector<std::string> known;
  for (const auto& [name, function] : functions()) known.push_back(name);
  return known.empty() ? "give a template's file, *.jinja, or load the plug-in that has the function (--plugin)"
                       : "give a template's file, *.jinja, or a function of a plug-in; there are: " + join(known, ", ");
}

bool is_row_template(const std::string& function) { return function.ends_with(".jinja"); }

std::string code_digest(const std::string& function) {
  if (is_row_template(function)) return files::sha256_of_file(function);
  const auto found = functions().find(function);
  check(found != functions().end(), "the digest of a row function that is not there");
  const std::filesystem::path& library = found->second.library;
  return function + (library.empty() ? "" : " " + files::sha256_of_file(library));
}

}  // namespace easydel::data

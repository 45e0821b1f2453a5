#include "easydel/base/files.h"
#include "easydel/elarge/plugin.h"

#include <dlfcn.h>

#include <set>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/plugin_abi.h"

namespace easydel::elarge {
namespace {

const char* const kRemedy = "rebuild it against this program's package (docs/adding_a_model.md)";

// The loader's message begins with the path, which the error already names.
std::string reason(const std::string& path) {
  const char* const said = ::dlerror();
  std::string text = said ? said : "unknown reason";
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

}  // namespace

void load_plugin(const std::filesystem::path& file) {
  const std::string where = file.string(), path = files::canonical(file).string();
  if (!files::is_file(path)) refuse(where, "there is no such plug-in", "give a shared library, name.so");
  static std::set<std::string> loaded;
  if (!loaded.insert(path).second) return;
  // Lazy binding, so that a library of another version can still be opened and report its version.
  void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) refuse(where, "cannot be loaded: " + reason(path), kRemedy);
  const auto abi = reinterpret_cast<const char* (*)()>(::dlsym(library, "easydel_plugin_abi"));
  const auto entry = reinterpret_cast<void (*)(Registry&)>(::dlsym(library, "easydel_plugin"));
  if (!abi || !entry)
    refuse(where, str("is not a plug-in: it has no ", abi ? "easydel_plugin" : "easydel_plugin_abi"),
           "see docs/adding_a_model.md");
  if (const std::string theirs = abi(); theirs != kPluginAbi)
    refuse(where, "is built against '" + theirs + "', and this program is '" + kPluginAbi + "'", kRemedy);
  Registry registry{path};
  const size_t families = models::families().size();
  std::set<std::string_view> methods;
  for (const train::MethodEntry& method : train::methods()) methods.insert(method.name);
  try {
    entry(registry);
  } catch (const UserError& refusal) {
    refuse(where, refusal.headline(), refusal.remedy);
  }
  for (const models::Family& family : models::families().subspan(families))
    log::info(where, ": family ", family.model_type);
  for (const train::MethodEntry& method : train::methods())
    if (!methods.contains(method.name)) log::info(where, ": method ", method.name);
}

}  // namespace easydel::elarge

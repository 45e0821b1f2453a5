// Families from outside the tree: a shared library that is built against the installed package, and named by --plugin
// or EASYDEL_PLUGINS. It defines two functions (examples/plugin is a whole one):
//
//   extern "C" const char* easydel_plugin_abi() { return easydel::models::kPluginAbi; }  // models/plugin_abi.h
//   extern "C" void easydel_plugin(easydel::models::Registry& registry) { registry.add(mine(), {"mine", {...}}); }
#pragma once

#include <filesystem>
#include <string>

#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {

// One more family; families() and family_configs() have it from now on, and spans of before are stale: call it before
// any model is opened. UserError where the model_type is taken.
void register_family(const Family& family, const FamilyConfig& config);

// What a plug-in gives its families to. Their texts must live as long as the library, which is never unloaded.
class Registry {
 public:
  // How a family is built, and its architectures, the usual one first. UserError where the model_type is taken.
  void add(const Family& family, const FamilyConfig& config) { register_family(family, config); }
};

// Loads a plug-in's library; once is enough. Before any model is opened. UserError "file: ...": no such file, no
// library, no plug-in, built against another version, or what its easydel_plugin throws.
void load_plugin(const std::filesystem::path& file);

}  // namespace easydel::models

#include "easydel/elarge/served_name.h"

#include <filesystem>

#include "easydel/base/files.h"

namespace easydel::elarge {

std::string served_name(const Config& config) {
  if (config.esurge.esurge_name) return *config.esurge.esurge_name;
  const std::filesystem::path given = config.model.name_or_path;
  if (!files::exists(given)) return config.model.name_or_path;
  const std::filesystem::path folder = given.has_filename() ? given : given.parent_path();
  return folder.extension() == ".gguf" ? folder.stem().string() : folder.filename().string();
}

}  // namespace easydel::elarge

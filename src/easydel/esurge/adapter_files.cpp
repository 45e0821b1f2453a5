#include "easydel/esurge/adapter_files.h"

#include "easydel/base/files.h"
#include "easydel/base/sha256.h"

namespace easydel::esurge {

std::string adapter_files_digest(const std::filesystem::path& folder) {
  return files::sha256(files::sha256_of_file(folder / "adapter_config.json") +
                       files::sha256_of_file(folder / "adapter_model.safetensors"));
}

}  // namespace easydel::esurge

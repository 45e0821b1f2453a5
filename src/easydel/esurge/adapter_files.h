// What names an adapter's content. No torch.
#pragma once

#include <filesystem>
#include <string>

namespace easydel::esurge {

// A SHA-256 of the two files of a folder that PEFT saved. UserError: they cannot be read.
std::string adapter_files_digest(const std::filesystem::path& folder);

}  // namespace easydel::esurge

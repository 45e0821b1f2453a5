// Folders that requests name, below one that the server's operator has named.
#pragma once

#include <filesystem>
#include <string>

#include "easydel/base/error.h"

namespace easydel::server {

// The folder without links. UserError with the field's name: it is not below `all`, or what is in it is not below it.
// `what`: "an adapter".
std::filesystem::path folder_below(const std::filesystem::path& all, const std::string& path, const std::string& field,
                                   const std::string& what);

// Throws what is wrong with such a folder, as UserError of the field. Clients are told no more of the disk than they
// have said themselves.
[[noreturn]] void refuse_folder(const UserError& error, const std::filesystem::path& folder, const std::string& path,
                                const std::string& field);

}  // namespace easydel::server

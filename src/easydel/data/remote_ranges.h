// Remote files that are read by ranges: no copy is kept (mixture.cache_remote_files: false).
#pragma once

#include <filesystem>
#include <string>

#include "easydel/columnar/columnar.h"
#include "easydel/data/remote_files.h"

namespace easydel::data {

// The path by which readers know the file from now on, files::ranged(): the address without its query. A few MiB of it
// are in memory. It is one version: what is read later must be of it. After options.expiry_seconds another call looks
// whether there is a new one. UserError "where: ...": it is not there, not allowed or cannot be reached, the server
// sends no ranges, or the file must be read whole. Reading it throws UserError "address: ...", also if it has changed.
std::filesystem::path ranged_web_file(const std::string& url, const RemoteOptions& options, const std::string& where);
std::filesystem::path ranged_cloud_file(const columnar::CloudFile& file, const RemoteOptions& options,
                                        const std::string& where);

}  // namespace easydel::data

// Which files an inform means: those that its patterns find, or those of a dataset of the hub.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/mixture_config.h"
#include "easydel/data/remote_files.h"
#include "easydel/data/rows.h"

namespace easydel::data {

// Whether its type is a name of the hub, "owner/name", and no files are given.
bool is_hub_dataset(const InformConfig& inform);

// The source type that reads a file: given by the inform, else by the file's extension; nullptr: unknown.
const FileSource* reader_of(const InformConfig& inform, const std::filesystem::path& file);

// Of all parts of its split; sorted; files that are elsewhere are fetched first. Throws UserError "where: ..." if
// nothing is found, there is no such split, or this program was built without the library that reads them.
std::vector<std::filesystem::path> files_of(const InformConfig& inform, const RemoteOptions& remote,
                                            const std::string& where);

}  // namespace easydel::data

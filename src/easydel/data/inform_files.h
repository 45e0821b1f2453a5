// Which files an inform means: those that its patterns find, or those of a data set of the hub.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/mixture_config.h"
#include "easydel/data/rows.h"

namespace easydel::data {

// Whether its type is a name of the hub, "owner/name", and no files are given.
bool is_hub_dataset(const InformConfig& inform);

// What reads a file of it: by its type, else by the file's extension; nullptr: neither says.
const Source* reader_of(const InformConfig& inform, const std::filesystem::path& file);

// Sorted; those of the hub are fetched first. UserError "where: ...": nothing is found, there is no such
// split, or this program was built without what reads them.
std::vector<std::filesystem::path> files_of(const InformConfig& inform, const std::string& where);

}  // namespace easydel::data

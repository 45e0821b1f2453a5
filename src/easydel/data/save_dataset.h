// Examples as rows of tokens in files, for another run or another program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/saved_columns.h"

namespace easydel::data {

// Throws UserError if nothing can be saved: the method's examples have no columns (rows can always be saved), or as
// check_saved_folder().
void check_save(const std::string& where, const SaveConfig& save, const SavedExamples& saved);

// Writes the examples in their order to `mixture.save`'s folder, as write_saved_folder(), and returns the files.
// UserError: as check_save() and write_saved_folder().
std::vector<std::filesystem::path> save_dataset(const std::string& where, const Dataset& dataset,
                                                const MixtureConfig& mixture, const SavedExamples& saved);

}  // namespace easydel::data

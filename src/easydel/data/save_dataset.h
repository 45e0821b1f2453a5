// Examples as rows of tokens in files, for another run or another program; perhaps sent to a hub.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/saved_columns.h"
#include "easydel/hub/push.h"

namespace easydel::data {

// Throws UserError if nothing can be saved: the format is not built, the folder already exists and is not an earlier
// save, nothing may be uploaded to the hub, or the method's examples have no columns.
void check_save(const std::string& where, const SaveConfig& save, const SavedExamples& saved);

// Writes the examples in their order to `mixture.save`'s folder, as train-00000-of-00002.jsonl ... As arrow it is a
// folder that load_from_disk() of `datasets` opens. A folder that already holds these data is left as it is. Otherwise
// all files are written next to it and take its place together; files with other names stay. Returns the files. Throws
// UserError like check_save, if the folder holds other data and overwrite is false, if another process saves there, and
// if the disk or the upload fails.
std::vector<std::filesystem::path> save_dataset(const std::string& where, const Dataset& dataset,
                                                const MixtureConfig& mixture, const SavedExamples& saved);

hub::PushOptions push_options(const SaveConfig& save);

}  // namespace easydel::data

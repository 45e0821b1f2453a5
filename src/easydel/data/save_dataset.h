// Examples as rows of tokens in files, for another run or another program; perhaps sent to a hub.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/saved_columns.h"
#include "easydel/hub/push.h"

namespace easydel::data {

// UserError where nothing can be saved: a form that is not built, the folder is there already, nothing may be sent to
// the hub, or the method's examples have no columns.
void check_save(const std::string& where, const SaveConfig& save, const SavedExamples& saved);

// Writes the examples in their order to `mixture.save`'s folder, as train-00000-of-00002.jsonl ... As arrow it is what
// load_from_disk() of `datasets` opens. Each file is whole or not there. UserError as check_save, and where the disk or
// the transfer fails. The files.
std::vector<std::filesystem::path> save_dataset(const std::string& where, const Dataset& dataset,
                                                const MixtureConfig& mixture, const SavedExamples& saved);

hub::PushOptions push_options(const SaveConfig& save);

}  // namespace easydel::data

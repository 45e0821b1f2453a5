// Examples as rows of tokens in files, for another run or another program; perhaps sent to a hub.
#pragma once

#include <filesystem>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/hub/push.h"

namespace easydel::data {

// UserError where nothing can be saved: a form that is not built, the folder is there already, nothing may be sent to
// the hub, or `method` learns from something else than texts and pairs.
void check_save(const std::string& where, const SaveConfig& save, const std::string& method);

// Writes the examples in their order to `mixture.save`'s folder, as train-00000-of-00002.jsonl ...: the tokens, an
// attention_mask of ones (if asked for), and of packed rows seq_lengths; of preference pairs prompt_ids, chosen_ids and
// rejected_ids. As arrow it is what load_from_disk() of `datasets` opens. Each file is whole or not there. UserError as
// check_save, and where the disk or the transfer fails. The files.
std::vector<std::filesystem::path> save_dataset(const std::string& where, const Dataset& dataset,
                                                const MixtureConfig& mixture, const std::string& method);

hub::PushOptions push_options(const SaveConfig& save);

}  // namespace easydel::data

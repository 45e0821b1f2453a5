// The rows that a run learns from in files: as the informs' functions, filters and formats make them, before they
// become tokens.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/save_dataset.h"

namespace easydel::data {

// Writes the rows of all informs in their order to `mixture.save`'s folder, as write_saved_folder(), and returns the
// files. Rows that training leaves out (bad ones, copies, those of evaluation data) are left out. They are read twice:
// once for their types, sizes and digest. Memory holds a batch of them. A row has its fields under the names by which
// their kind is known; with content_field only that field, additional_fields, and what goes with a conversation. Images
// are {bytes, path}; JSON has the bytes in base64. `prepare` tells which rows are bad. UserError: as Dataset::build()
// and write_saved_folder(); csv cannot hold a column; the rows change meanwhile.
std::vector<std::filesystem::path> save_rows(const std::string& where, const DatasetOptions& options,
                                             const Prepare& prepare, const MixtureConfig& mixture,
                                             const std::string& method);

// What `mixture.save` says, examples or rows. `options`, `prepare`: of the data to train on; `dataset` is made of them.
void save_data(const std::string& where, const DatasetOptions& options, const Prepare& prepare, const Dataset& dataset,
               const MixtureConfig& mixture, const SavedExamples& saved);

}  // namespace easydel::data

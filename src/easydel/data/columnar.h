// The door to what reads and writes files of columns (columnar/columnar.h).
#pragma once

#include <filesystem>
#include <vector>

#include "easydel/columnar/columnar.h"
#include "easydel/data/rows.h"

namespace easydel::data {

// Loads libeasydel_arrow.so (next to libeasydel_base.so) on the first call; thread-safe. Throws UserError if it does
// not exist, as in a program that was built without Arrow.
columnar::Library& columnar_library();

// Whether the library's file exists.
bool columnar_library_is_there();

// columnar_library() from a file of one's own.
columnar::Library& load_columnar_library(const std::filesystem::path& path);

// As FileSource::read; a row is "file:number". Only the fields that the options ask for are read.
bool read_columns(const std::filesystem::path& file, columnar::Form form, const ReadOptions& options,
                  const RowSink& sink);

// The first row of each row group or record batch, and the number of rows at the end. UserError: see Library::read.
std::vector<RowPlace> places_in_columns(const std::filesystem::path& file, columnar::Form form);

}  // namespace easydel::data

// Writes rows of any values to a Parquet or Arrow file.
#pragma once

#include <filesystem>
#include <memory>

#include "easydel/columnar/columnar.h"

namespace easydel::columnar {

std::unique_ptr<RowWriter> open_row_writer(const std::filesystem::path& file, const RowWriteOptions& options);

}  // namespace easydel::columnar

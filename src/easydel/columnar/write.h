// Writes lists of numbers to a Parquet or Arrow file.
#pragma once

#include <filesystem>
#include <memory>

#include "easydel/columnar/columnar.h"

namespace easydel::columnar {

std::unique_ptr<Writer> open_writer(const std::filesystem::path& file, const WriteOptions& options);

}  // namespace easydel::columnar

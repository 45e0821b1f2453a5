// Tables, counts and sizes as `describe` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel {

std::string text_table(
    const std::vector<std::vector<std::string>>& rows);     // columns padded, two spaces before each row
std::string count_text(int64_t count);                      // "70.6 G"
std::string bytes_text(uint64_t bytes);                     // "131 GiB"
std::string shape_text(const std::vector<int64_t>& shape);  // "64 x 32"

}  // namespace easydel

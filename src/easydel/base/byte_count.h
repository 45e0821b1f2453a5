// Amounts of bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace easydel {

// "500MB", "2 GiB", "5e9", "1.5GB": K, M, G and T are powers of 1000, with an i of 1024. Nothing: no amount above 0.
std::optional<int64_t> byte_count(std::string_view text);

}  // namespace easydel

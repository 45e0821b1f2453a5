// Numbers of bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace easydel {

// "500MB", "2 GiB", "5e9", "1.5GB": K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024. nullopt: not an amount > 0.
std::optional<int64_t> byte_count(std::string_view text);

}  // namespace easydel

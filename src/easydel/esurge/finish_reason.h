// Why an answer ended.
#pragma once

#include <cstdint>
#include <string_view>

namespace easydel::esurge {

enum class FinishReason : uint8_t { stop, length, abort, error };

// "stop", "length", "abort", "error"
constexpr std::string_view name_of(FinishReason reason) {
  constexpr std::string_view names[] = {"stop", "length", "abort", "error"};
  return names[size_t(reason)];
}

}  // namespace easydel::esurge

// An adapter that requests may name. Plain values without torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace easydel::esurge {

struct AdapterInfo {
  std::string name = {};
  std::filesystem::path folder = {};
  int64_t version = 0;   // in the order in which adapters were loaded, from 1
  int64_t requests = 0;  // that use this version now
};

}  // namespace easydel::esurge

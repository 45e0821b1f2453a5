// An adapter that requests may name. Plain values without torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace easydel::text {
class Tokenizer;
}

namespace easydel::esurge {

struct AdapterInfo {
  std::string name = {};
  std::filesystem::path folder = {};
  int64_t version = 0;   // no two adapters of a process have the same one
  int64_t r = 0;         // its rank
  int64_t requests = 0;  // that use this version now
  // That its folder has, for its requests; null: they use the model's.
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;
};

}  // namespace easydel::esurge

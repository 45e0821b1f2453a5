// A block of examples as a safetensors file of the token store (docs/design/013-token-store.md).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "easydel/data/example_block.h"

namespace easydel::data {

// Writes a block and the number of the row in its inform that each example comes from. The file appears whole or not at
// all. UserError: the disk fails.
void write_token_shard(const std::filesystem::path& file, const BlockView& block, const std::vector<int64_t>& rows,
                       const std::map<std::string, std::string>& metadata);

struct TokenShard {
  BlockView block;
  std::span<const int64_t> rows;
  std::map<std::string, std::string> metadata;
  std::shared_ptr<const void> owner;                   // of the arrays, which are mapped
  std::vector<std::span<const std::byte>> bytes = {};  // of all arrays, mapped: files::Mapped::forget() may drop them
};
// UserError: it is not a shard, or its arrays do not fit together.
TokenShard open_token_shard(const std::filesystem::path& file);

}  // namespace easydel::data

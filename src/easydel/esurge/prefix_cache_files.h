// The prefix cache as a folder: manifest.json, and beside it one safetensors file with the index and the contents of
// its pages. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "easydel/esurge/saved_prefix_index.h"

namespace easydel::weights {
class SafetensorsFile;
}

namespace easydel::esurge {

// Copies the contents of a page, or of a state, of a group: its page_bytes.
using ReadPage = std::function<void(int group, int32_t page, std::span<std::byte> to)>;

// Writes what the index has. What the folder held before stays usable until the new one is complete. An index without
// pages leaves the folder as it is. Returns the number of tokens that are saved. UserError: the disk does not take it,
// or another process is saving there.
int64_t save_prefix_cache(const std::filesystem::path& folder, const PrefixCacheIdentity& identity,
                          const CacheLayout& layout, const PrefixIndex& index, const ReadPage& read);

// A folder that was read: every byte of it is the one that was written.
struct StoredPrefixCache {
  SavedPrefixIndex index;
  std::vector<std::span<const std::byte>> groups = {};  // by group: the stored pages, one after the other
  std::shared_ptr<const weights::SafetensorsFile> file = nullptr;

  std::span<const std::byte> page(const CacheLayout& layout, int group, int32_t number) const;
};
// nullopt: there is none, or it does not fit; then the log says why in one line. UserError: the folder cannot be made.
std::optional<StoredPrefixCache> load_prefix_cache(const std::filesystem::path& folder,
                                                   const PrefixCacheIdentity& identity, const CacheLayout& layout);

}  // namespace easydel::esurge

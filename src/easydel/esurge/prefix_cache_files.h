// The prefix cache as a folder: manifest.json, and beside it one safetensors file with the index and the contents of
// its pages. Of several ranks each has such a folder with the whole index and the pages of its data part. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/saved_prefix_index.h"

namespace easydel::weights {
class SafetensorsFile;
}

namespace easydel::esurge {

// Copies the contents of a page, or of a state, of a group: its page_bytes.
using ReadPage = std::function<void(int group, int32_t page, std::span<std::byte> to)>;

// Of the first rank the folder itself, of others a folder in it.
std::filesystem::path prefix_cache_folder(const std::filesystem::path& folder, int64_t rank);

// Writes an index as PrefixIndex::save() gives it, with its pages ids[group][number]. What the folder held before stays
// usable until the new one is complete. An index without pages leaves the folder as it is. Returns the number of tokens
// that are saved. UserError: the disk does not take it, or another process is saving there.
int64_t save_prefix_cache(const std::filesystem::path& folder, const PrefixCacheIdentity& identity,
                          const CacheLayout& layout, const SavedPrefixIndex& index,
                          const std::vector<std::vector<int32_t>>& ids, const ReadPage& read);

// A folder that was read: every byte of it is the one that was written.
struct StoredPrefixCache {
  SavedPrefixIndex index;
  std::string index_digest = {};                        // ranks that saved one cache have the same one
  std::vector<std::vector<int32_t>> own = {};           // own_pages() of the rank
  std::vector<std::span<const std::byte>> groups = {};  // by group: the stored pages, one after the other
  std::shared_ptr<const weights::SafetensorsFile> file = nullptr;

  bool has(const PrefixIndex::Restored& page) const { return own[size_t(page.group)][size_t(page.number)] >= 0; }
  // One that it has.
  std::span<const std::byte> page(const CacheLayout& layout, int group, int32_t number) const;
};
// UserError: there is none, it is damaged, or it does not fit.
StoredPrefixCache read_prefix_cache(const std::filesystem::path& folder, const PrefixCacheIdentity& identity,
                                    const CacheLayout& layout);
// nullopt: there is none, or it does not fit; then the log says why in one line. UserError: the folder cannot be made.
std::optional<StoredPrefixCache> load_prefix_cache(const std::filesystem::path& folder,
                                                   const PrefixCacheIdentity& identity, const CacheLayout& layout);

}  // namespace easydel::esurge

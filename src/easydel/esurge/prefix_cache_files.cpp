#include "easydel/esurge/prefix_cache_files.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/sha256.h"
#include "easydel/weights/safetensors.h"

namespace easydel::esurge {
namespace {

namespace fs = std::filesystem;

// A new file is written beside the one that the manifest names, so there are two names.
constexpr std::string_view page_files[] = {"pages-1.safetensors", "pages-2.safetensors"};

fs::path manifest_of(const fs::path& folder) { return folder / "manifest.json"; }
std::string tensor_of(size_t group) { return str("group_", group); }

// Which of the two names the manifest gives; 0 if there is none that can be read.
size_t file_in_use(const fs::path& folder) try {
  const Value manifest = parse_json(files::read(manifest_of(folder)));
  const Value* const name = manifest.is_map() ? manifest.find("pages") : nullptr;
  return name && name->scalar == page_files[1] ? 1 : 0;
} catch (const UserError&) {
  return 0;
}

std::string digest_of(std::span<const std::byte> bytes) {
  files::Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void unusable(const std::string& why) { refuse("prefix cache", why); }

const Value& entry_of(const Value& map, std::string_view key) {
  const Value* const found = map.is_map() ? map.find(key) : nullptr;
  if (!found) unusable("it is not a prefix cache");
  return *found;
}

// The bytes of a tensor of bytes, which must have `rows` rows of `row_bytes`.
std::span<const std::byte> bytes_of(const weights::SafetensorsFile& file, const std::string& name, int64_t rows,
                                    int64_t row_bytes) {
  const weights::TensorView view = file.at(name);
  if (view.dtype != weights::DType::u8 || view.shape != std::vector<int64_t>{rows, row_bytes})
    unusable("its pages are damaged: " + name + " has another shape");
  return view.bytes;
}

}  // namespace

fs::path prefix_cache_folder(const fs::path& folder, int64_t rank) {
  return rank == 0 ? folder : folder / str("rank-", rank);
}

StoredPrefixCache read_prefix_cache(const fs::path& folder, const PrefixCacheIdentity& identity,
                                    const CacheLayout& layout) {
  if (!files::exists(manifest_of(folder))) unusable("there is none");
  const Value manifest = parse_json(files::read(manifest_of(folder)), "manifest.json");
  const std::string name = entry_of(manifest, "pages").scalar;
  if (name != page_files[0] && name != page_files[1]) unusable("it is not a prefix cache");
  StoredPrefixCache out;
  out.file = weights::SafetensorsFile::open(folder / name);
  const weights::TensorView encoded = out.file->at("index");
  if (encoded.dtype != weights::DType::u8) unusable("its index is damaged");
  const std::string_view index = text_of(encoded.bytes);
  if (const std::string why = why_prefix_cache_does_not_fit(manifest, identity, layout, index); !why.empty())
    unusable(why);
  out.index = decode_prefix_index(index, layout);
  out.index_digest = entry_of(manifest, "index_sha256").scalar;
  out.own = own_pages(out.index, layout, identity.place.part);
  const Value& digests = entry_of(manifest, "pages_sha256");
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    auto& pages = out.groups.emplace_back();
    const int64_t count = std::ranges::count_if(out.own[g], [](int32_t page) { return page >= 0; });
    if (count == 0) continue;
    pages = bytes_of(*out.file, tensor_of(g), count, layout.groups[g].page_bytes);
    if (entry_of(digests, tensor_of(g)).scalar != digest_of(pages)) unusable("its pages are damaged");
  }
  return out;
}

int64_t save_prefix_cache(const fs::path& folder, const PrefixCacheIdentity& identity, const CacheLayout& layout,
                          const SavedPrefixIndex& saved, const std::vector<std::vector<int32_t>>& ids,
                          const ReadPage& read) {
  if (saved.nodes.empty()) return 0;
  const std::string encoded = saved.encode(layout);
  const std::vector<std::vector<int32_t>> own = own_pages(saved, layout, identity.place.part);
  files::make_directories(folder);
  const files::Lock lock(folder / ".lock", folder, "this engine");
  const size_t before = file_in_use(folder), next = 1 - before;

  Value digests = Value::map();
  std::vector<weights::OutTensor> tensors;
  tensors.push_back({"index", weights::DType::u8, {int64_t(encoded.size())}, [&](const auto& sink) {
                       sink(encoded.data(), encoded.size());
                     }});
  for (size_t g = 0; g < ids.size(); ++g) {
    const int64_t page_bytes = layout.groups[g].page_bytes,
                  count = std::ranges::count_if(own[g], [](int32_t page) { return page >= 0; });
    if (count == 0) continue;
    tensors.push_back({tensor_of(g), weights::DType::u8, {count, page_bytes}, [&, g, page_bytes](const auto& sink) {
                         files::Sha256 digest;
                         std::vector<std::byte> page(size_t(page_bytes), std::byte{0});
                         for (size_t number = 0; number < ids[g].size(); ++number) {
                           if (own[g][number] < 0) continue;
                           read(int(g), ids[g][number], page);
                           digest.add(page.data(), page.size());
                           sink(page.data(), page.size());
                         }
                         digests.set(tensor_of(g), Value::text(digest.hex()));
                       }});
  }
  weights::write_safetensors(folder / page_files[next], tensors, {});
  Value manifest = prefix_cache_manifest(identity, layout, encoded);
  manifest.set("pages", Value::text(std::string(page_files[next])));
  manifest.set("pages_sha256", std::move(digests));
  files::write(manifest_of(folder), to_json(manifest, 2) + "\n");
  files::remove_all(folder / page_files[before]);
  int64_t tokens = 0;
  for (const SavedPrefixIndex::Node& node : saved.nodes) tokens += int64_t(node.tokens.size());
  return tokens;
}

std::span<const std::byte> StoredPrefixCache::page(const CacheLayout& layout, int group, int32_t number) const {
  const auto bytes = size_t(layout.groups[size_t(group)].page_bytes);
  return groups[size_t(group)].subspan(size_t(own[size_t(group)][size_t(number)]) * bytes, bytes);
}

std::optional<StoredPrefixCache> load_prefix_cache(const fs::path& folder, const PrefixCacheIdentity& identity,
                                                   const CacheLayout& layout) {
  files::make_directories(folder);
  if (!files::exists(manifest_of(folder))) return std::nullopt;
  try {
    return read_prefix_cache(folder, identity, layout);
  } catch (const UserError& error) {
    log::info("esurge: the prefix cache in ", folder.string(), " is not used: ", error.problem);
    return std::nullopt;
  }
}

}  // namespace easydel::esurge

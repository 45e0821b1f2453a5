#include "easydel/esurge/weight_sources.h"

#include <algorithm>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/file_stamp.h"
#include "easydel/base/files.h"
#include "easydel/base/sha256.h"
#include "easydel/esurge/adapter_files.h"
#include "easydel/esurge/rank_leader.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/tensor/block_hash.h"
#include "easydel/weights/folder.h"

namespace easydel::esurge {
namespace {

// A machine since it was started: devices and inodes have no meaning beyond it.
std::string machine() {
  const std::filesystem::path file = "/proc/sys/kernel/random/boot_id";
  return files::is_file(file) ? files::read(file) : "";
}

// Which files the folder has, whatever their path. Empty: that cannot be told.
std::string stamps_of(const std::filesystem::path& model) {
  std::string out = machine();
  if (out.empty()) return out;
  const std::filesystem::path folder = files::is_folder(model) ? model : model.parent_path();
  for (const std::filesystem::path& path : files::list(folder)) {
    if (!files::is_file(path)) continue;
    const files::Stamp stamp = files::stamp_of(path);
    out +=
        str(path.filename().string(), " ", stamp.device, " ", stamp.inode, " ", stamp.bytes, " ", stamp.changed, "\n");
  }
  return out;
}

std::string hash_of(const weights::TensorView& view) {
  const std::vector<uint64_t> blocks = tensor::hashes_of_blocks(view.bytes.data(), view.bytes.size());
  files::Sha256 all;
  all.add(view.type_name().data(), view.type_name().size());
  all.add(blocks.data(), blocks.size() * sizeof(uint64_t));
  return all.hex().substr(0, 32);
}

// What the program that wrote a configuration says of itself.
bool is_remark(const std::string& key) { return key.starts_with('_') || key == "transformers_version"; }

// The first key, in the order of the first one, whose values differ; empty: none.
std::string first_difference(const Value& first, const Value& other) {
  for (size_t i = 0; i < first.entries.size(); ++i) {
    const auto& [key, value] = first.entries[i];
    const bool in_place = i < other.entries.size() && other.entries[i].first == key;
    const Value* const found = in_place ? &other.entries[i].second : other.find(key);
    if (!found || !(*found == value)) return key;
  }
  if (first.entries.size() == other.entries.size()) return "";
  for (const auto& [key, value] : other.entries)
    if (!first.find(key)) return key;
  return "";
}

// What differs apart from the files; empty: nothing.
std::string difference(const Value& first, const Value& other) {
  if (const std::string key = first_difference(*first.find("config"), *other.find("config")); !key.empty())
    return key + " of config.json differs";
  if (!(*first.find("adapters") == *other.find("adapters"))) return "the adapter that it was loaded with differs";
  const Value *const own = first.find("tensors"), *const theirs = other.find("tensors");
  const std::string name = own && theirs ? first_difference(*own, *theirs) : "";
  return name.empty() ? "" : name + " differs";
}

bool has_same_files(const Value& first, const Value& other) {
  const std::string& files = first.find("files")->scalar;
  return !files.empty() && files == other.find("files")->scalar;
}

}  // namespace

std::string weight_sources(const models::Model& model, bool contents) {
  Value config = Value::map(), adapters = Value::list(), out = Value::map();
  for (const auto& [key, value] : model.config().entries)
    if (!is_remark(key)) config.set(key, value);
  for (const auto& adapter : model.adapters())
    if (const auto& folder = adapter->options().folder; !folder.empty())
      adapters.items.push_back(Value::text(adapter_files_digest(folder)));
  out.set("config", std::move(config));
  out.set("adapters", std::move(adapters));
  const std::filesystem::path& folder = model.folder();
  const bool has_files = !folder.empty() && files::exists(folder) && weights::Folder::has_weights(folder);
  out.set("files", Value::text(has_files ? stamps_of(folder) : ""));
  if (contents && has_files) {
    Value tensors = Value::map();
    const weights::Folder opened = weights::Folder::open(folder);
    for (const std::string& name : opened.names())
      tensors.entries.emplace_back(name, Value::text(hash_of(opened.at(name))));
    out.set("tensors", std::move(tensors));
  }
  return to_json(out);
}

std::string find_other_weights(RankLeader& ranks, const models::Model& model) {
  for (const bool contents : {false, true}) {
    Value own;
    const auto others =
        ranks.ask(DescribeWeights{contents}, [&] { own = parse_json(weight_sources(model, contents)); });
    bool same_files = true;
    for (const RankLeader::Answer& other : others) {
      const Value theirs = parse_json(other.text, other.rank);
      if (const std::string what = difference(own, theirs); !what.empty())
        return str(other.rank, " has other weights than the first rank: ", what);
      same_files &= has_same_files(own, theirs);
    }
    if (same_files) break;
  }
  return "";
}

void refuse_other_weights(RankLeader& ranks, const models::Model& model) {
  if (const std::string why = find_other_weights(ranks, model); !why.empty())
    refuse("esurge", "the ranks do not compute the same: " + why, "give every rank the same model");
}

}  // namespace easydel::esurge

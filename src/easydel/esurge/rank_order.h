// What the first rank of an engine has the other ranks do between steps. Each order is answered by a StepReply without
// a number. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "easydel/esurge/prefix_index.h"

namespace easydel::esurge {

// Reads an adapter, which steps name by the number.
struct LoadAdapter {
  uint64_t number = 0;
  std::string folder = {};
  std::string digest = {};  // of the first rank's files (adapter_files_digest)
  bool operator==(const LoadAdapter&) const = default;
};

// Adds up adapters that were read. All ranks carry it out together.
struct AddAdapterSum {
  uint64_t number = 0;
  bool linear = false;                                   // or of the products (models::AdapterSum::Kind)
  std::vector<std::pair<uint64_t, double>> shares = {};  // numbers and weights
  bool operator==(const AddAdapterSum&) const = default;
};

// Reads other weights beside the present ones. They answer after ChooseWeights.
struct LoadWeights {
  std::string folder = {};
  bool operator==(const LoadWeights&) const = default;
};

// Receives other weights from the first rank, which has them in memory, and keeps them beside the present ones. All
// ranks carry it out together (models/spread_model.h). They answer after ChooseWeights.
struct ReceiveWeights {
  std::string config = {};  // of the new weights, JSON
  bool operator==(const ReceiveWeights&) const = default;
};

// Answers with weight_sources() of the weights that LoadWeights has read, otherwise of the present ones.
struct DescribeWeights {
  bool contents = false;
  bool operator==(const DescribeWeights&) const = default;
};

// Steps go on with the weights that were read or received, or those are dropped.
struct ChooseWeights {
  bool new_ones = false;
  bool operator==(const ChooseWeights&) const = default;
};

// Changes the present weights in place, each rank its part of them, while the first one changes its own
// (FollowerOptions::change_weights).
struct ChangeWeights {
  bool operator==(const ChangeWeights&) const = default;
};

// Writes the prefix cache, of which every rank has the pages of its data part (prefix_cache_files.h).
struct SaveCache {
  std::string folder = {};                     // the first rank's
  std::string weights = {};                    // as PrefixCacheIdentity has it
  std::string index = {};                      // SavedPrefixIndex::encode
  std::vector<std::vector<int32_t>> ids = {};  // of its pages, by group and number
  bool operator==(const SaveCache&) const = default;
};

// Reads what SaveCache wrote.
struct OpenCache {
  std::string folder = {}, weights = {};
  std::string index_digest = {};  // StoredPrefixCache::index_digest
  bool operator==(const OpenCache&) const = default;
};

// Puts pages of what was read into place, and closes it.
struct PlaceCache {
  std::vector<PrefixIndex::Restored> pages = {};
  bool operator==(const PlaceCache&) const = default;
};

using RankOrder = std::variant<LoadAdapter, AddAdapterSum, LoadWeights, ReceiveWeights, DescribeWeights, ChooseWeights,
                               SaveCache, OpenCache, PlaceCache, ChangeWeights>;
std::string encode(const RankOrder& order);
bool is_order(std::string_view bytes);
RankOrder decode_order(std::string_view bytes);  // UserError: damaged bytes

}  // namespace easydel::esurge

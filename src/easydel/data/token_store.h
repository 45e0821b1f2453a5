// Data that were tokenized once and are kept on the disk, to be mapped by later runs:
// docs/design/013-token-store.md. A store is a folder that is named by a digest of everything that decides its
// contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"

namespace easydel::data {

// What the mixture's keys say of a store; nullopt: the run keeps its tokens in memory.
std::optional<StoreOptions> store_options(const MixtureConfig& mixture);

// The digest of what decides the examples: the input files' contents, the informs, and the options' settings. Not where
// the files lie. UserError: a file cannot be read.
std::string store_key(const DatasetOptions& options);

// The examples of the options' informs from their store. It is built if it is not there; a build that was interrupted
// goes on after its last whole shard. If another process builds it, this one waits. nullopt: the options ask for no
// store, or there is less input than they want one for, or it is not there and origins are to be kept.
// UserError as Dataset::build; the store is broken; an input file changed while it was read; the disk is full.
std::optional<ReadExamples> read_through_store(const DatasetOptions& options, const Prepare& prepare);

struct StoredTokens {
  std::string key;
  std::filesystem::path folder;
  bool is_whole = false;  // false: a build that was interrupted
  int64_t examples = 0, tokens = 0, bytes = 0;
  std::string used;    // when it was last used, as files tell it: "2026-11-23 00:10"
  std::string inputs;  // names of its files when it was built
};

// The stores in a cache folder, the oldest use first.
std::vector<StoredTokens> list_stores(const std::filesystem::path& cache);
// What is wrong with a store, read whole; empty: nothing.
std::string store_defect(const std::filesystem::path& folder);
// UserError: a process builds it.
void remove_store(const std::filesystem::path& folder);

}  // namespace easydel::data

#include "easydel/data/token_store.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/file_listing.h"
#include "easydel/base/file_stamp.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/config/fields.h"
#include "easydel/data/file_digests.h"
#include "easydel/data/inform_examples.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/row_function.h"
#include "easydel/data/stored_origins.h"
#include "easydel/data/token_shard.h"
#include "easydel/hub/settings.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t store_version = 3;  // of the files, and of what the program makes of rows
constexpr const char* store_name = "store.json";
constexpr const char* used_name = "used";
constexpr const char* digests_name = "digests.json";

int64_t number_in(const Value& document, const char* name) {
  const Value* const number = document.find(name);
  return number ? number->as_int().value_or(0) : 0;
}

// Notes that only save work later: the run does without, on a disk that is full or cannot be written to.
void unless_it_fails(const std::function<void()>& note) {
  try {
    note();
  } catch (const UserError& error) {
    log::info(error.headline());
  }
}

std::string shard_name(size_t number) {
  char name[48];
  std::snprintf(name, sizeof name, "tokens-%05zu.safetensors", number);
  return name;
}

fs::path lock_of(const fs::path& folder) { return folder.parent_path() / ("." + folder.filename().string() + ".lock"); }

// The input files of all informs.
std::vector<fs::path> inputs_of(const DatasetOptions& options) {
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  std::vector<fs::path> out;
  for (size_t i = 0; i < options.informs.size(); ++i)
    for (fs::path& file : InformReader(options, i, nothing).files()) out.push_back(std::move(file));
  return out;
}

std::vector<files::Stamp> stamps_of(const std::vector<fs::path>& inputs) {
  std::vector<files::Stamp> out;
  for (const fs::path& file : inputs) out.push_back(files::stamp_of(file));
  return out;
}

// What an inform says of its rows; its files count by their contents.
Value description_of(const DatasetOptions& options, size_t index, FileDigests& digests) {
  const InformConfig& inform = options.informs[index];
  Value out = Value::map();
  for (auto& [name, value] : config::write(inform).entries)
    if (name != "data_files" && name != "name") out.set(name, std::move(value));
  for (const auto& [name, function] :
       {std::pair{"preprocessing_fn", inform.preprocessing_fn}, {"format_callback", inform.format_callback}})
    if (function) out.set(name, Value::text(code_digest(*function)));
  Value& contents = out.set("files", Value::list());
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  for (const fs::path& file : InformReader(options, index, nothing).files()) {
    Value& one = contents.items.emplace_back(Value::map());
    one.set("type", Value::text(file.extension().string()));
    one.set("sha256", Value::text(digests.of(file)));
  }
  return out;
}

std::string key_of(const DatasetOptions& options, FileDigests& digests) {
  Value out = Value::map();
  out.set("version", Value::integer(store_version));
  out.set("settings", options.store->settings);
  out.set("target_field", Value::text(options.target_field));
  out.set("tokens_field", Value::text(options.tokens_field));
  if (options.tokenize_callback) out.set("tokenize_callback", Value::text(code_digest(*options.tokenize_callback)));
  out.set("skips_bad_rows", Value::boolean(options.bad_rows.skip));
  out.set("most_bad_rows", Value::integer(options.bad_rows.most.value_or(-1)));
  out.set("deduplicate", Value::boolean(options.deduplicate));
  out.set("evaluation", Value::boolean(options.evaluation));
  Value& informs = out.set("informs", Value::list());
  for (size_t i = 0; i < options.informs.size(); ++i) informs.items.push_back(description_of(options, i, digests));
  if (options.decontamination) {
    Value& against = out.set("decontamination", Value::map());
    against.set("words", Value::integer(options.decontamination->words));
    against.set("drop", Value::boolean(options.decontamination->drop));
    DatasetOptions evaluation = options;
    evaluation.informs = options.decontamination->against;
    Value& list = against.set("informs", Value::list());
    for (size_t i = 0; i < evaluation.informs.size(); ++i) list.items.push_back(description_of(evaluation, i, digests));
  }
  return files::sha256(to_json(out)).substr(0, 32);
}

// Writes blocks of examples as the shards of a store that is being built.
class ShardWriter final : public ExampleTarget {
 public:
  ShardWriter(const fs::path& folder, const StoreOptions& store, std::string key)
      : folder_(folder), store_(store), key_(std::move(key)), block_(size_t(store.shard_tokens)) {}

  // Takes over the whole shards of an interrupted build, and returns the place after them; null: there are none.
  Value go_on() {
    Value place;
    for (;; ++shards_) {
      const fs::path file = folder_ / shard_name(shards_);
      if (!files::is_file(file)) break;
      const TokenShard shard = open_token_shard(file);
      const auto key = shard.metadata.find("key"), after = shard.metadata.find("place");
      if (key == shard.metadata.end() || key->second != key_ || after == shard.metadata.end()) break;
      place = parse_json(after->second);
    }
    if (place.is_map())
      if (const Value* const digest = place.find("digest")) digest_.value = std::stoull(digest->scalar, nullptr, 16);
    return place;
  }

  void add(const Example& example, int64_t row) override {
    block_.add(example);
    digest_.add(example);
    rows_.push_back(row);
  }
  bool is_full() const override { return block_.is_full(); }
  void cut(const Value& place) override {
    Value known = place;
    known.set("digest", Value::text(digest_.text()));
    block_.seal();
    write_token_shard(folder_ / shard_name(shards_++), block_.view(), rows_,
                      {{"key", key_}, {"place", to_json(known)}});
    block_ = ExampleBlock(size_t(store_.shard_tokens));
    rows_.clear();
  }
  // Writes the last shard, after all informs were read.
  void finish(const ReadExamples& read) {
    if (block_.size() == 0) return;
    Value place = Value::map(), sizes = Value::list();
    for (const int64_t size : read.sizes) sizes.items.push_back(Value::integer(size));
    place.set("sizes", std::move(sizes));
    place.set("report", document_of(read.report));
    cut(place);
  }
  size_t shards() const { return shards_; }
  const ExampleDigest& digest() const { return digest_; }

 private:
  fs::path folder_;
  const StoreOptions& store_;
  std::string key_;
  ExampleBlock block_;
  std::vector<int64_t> rows_;
  ExampleDigest digest_;
  size_t shards_ = 0;
};

[[noreturn]] void refuse_store(const fs::path& folder, const std::string& problem) {
  refuse(folder.string(), "the token store is broken: " + problem,
         "easydel data cache " + folder.filename().string() + " --remove --cache-dir " + folder.parent_path().string() +
             " removes it, and the next run builds it again");
}

// A shard's block whose examples have their numbers, from `first` on, in the column of origins.
void add_numbered(TokenShard shard, int64_t first, ExampleBlocks& examples) {
  struct Numbered {
    std::shared_ptr<const void> shard;
    std::vector<int64_t> numbers;
    std::vector<uint8_t> present;
  };
  auto owner = std::make_shared<Numbered>();
  const int64_t size = shard.block.size();
  for (int64_t i = 0; i < size; ++i)
    owner->numbers.insert(owner->numbers.end(),
                          shard.block.sequence_offsets[size_t(i) + 1] - shard.block.sequence_offsets[size_t(i)],
                          first + i);
  owner->present.assign(size_t(size), 1);
  owner->shard = std::move(shard.owner);
  shard.block.columns.push_back(
      {row_column, Column::Per::sequence, std::span<const int64_t>(owner->numbers), owner->present});
  examples.add(std::move(shard.block), owner);
}

// The examples of a whole store.
ReadExamples open_store(const fs::path& folder, const DatasetOptions& options, const std::string& key,
                        FileDigests& digests) {
  Value store;
  try {
    store = parse_json(files::read(folder / store_name));
  } catch (const UserError& error) {
    refuse_store(folder, error.headline());
  }
  const Value *const shards = store.find("shards"), *const sizes = store.find("sizes"),
                     *const report = store.find("report"), *const digest = store.find("digest"),
                     *const own = store.find("key");
  if (number_in(store, "version") != store_version || !shards || !sizes || !report || !digest || !own)
    refuse_store(folder, "store.json is of another version");
  if (own->scalar != key) refuse_store(folder, "store.json has another key");
  ReadExamples out;
  std::vector<int64_t> rows;
  for (const auto& [name, entry] : shards->entries) {
    const fs::path file = folder / name;
    if (!files::is_file(file)) refuse_store(folder, name + " is missing");
    const Value* const sha256 = entry.find("sha256");
    if (!sha256 || digests.of(file) != sha256->scalar)
      refuse_store(folder, name + " is not what was written (its hash is different)");
    TokenShard shard = open_token_shard(file);
    const std::vector<std::span<const std::byte>> bytes = shard.bytes;
    if (options.keep_origins) {
      rows.insert(rows.end(), shard.rows.begin(), shard.rows.end());
      add_numbered(std::move(shard), out.examples.size(), out.examples);
    } else {
      out.examples.add(std::move(shard.block), std::move(shard.owner));
    }
    // Counting read them; without this, opening a store of 16 GB of text leaves 400 MB of its pages in memory.
    for (const auto& array : bytes) files::Mapped::forget(array);
  }
  if (out.examples.size() != number_in(store, "examples")) refuse_store(folder, "it has another number of examples");
  out.examples.set_digest(digest->scalar);
  for (const Value& size : sizes->items) out.sizes.push_back(size.as_int().value_or(0));
  if (options.keep_origins)
    out.stored_origins = std::make_shared<const StoredOrigins>(options, out.sizes, std::move(rows));
  out.report = report_of(*report);
  unless_it_fails([&] { files::write(folder / used_name, ""); });
  return out;
}

void build_store(const fs::path& folder, const std::string& key, const DatasetOptions& options, const Prepare& prepare,
                 const std::vector<fs::path>& inputs, FileDigests& digests) {
  const std::vector<files::Stamp> before = stamps_of(inputs);
  ReadExamples read;
  // What deduplicate has seen is not kept.
  if (options.deduplicate) files::remove_all(folder);
  files::make_directories(folder);
  ShardWriter writer(folder, *options.store, key);
  const Value place = writer.go_on();
  if (place.is_map())
    log::info(folder.string(), ": going on after ", counted(int64_t(writer.shards()), "shard"),
              " that an interrupted build wrote");
  read_examples(options, prepare, writer, read, place);
  writer.finish(read);
  if (stamps_of(inputs) != before) {
    files::remove_all(folder);
    refuse(options.section, "an input file changed while it was read", "run again when nothing writes to the files");
  }
  Value store = Value::map(), shards = Value::map(), sizes = Value::list(), names = Value::list();
  int64_t examples = 0, tokens = 0;
  for (size_t i = 0; i < writer.shards(); ++i) {
    const fs::path file = folder / shard_name(i);
    const TokenShard shard = open_token_shard(file);
    examples += shard.block.size();
    tokens += int64_t(shard.block.token_offsets.back());
    Value& entry = shards.set(shard_name(i), Value::map());
    entry.set("bytes", Value::integer(int64_t(files::size(file))));
    entry.set("sha256", Value::text(digests.of(file)));
  }
  for (const int64_t size : read.sizes) sizes.items.push_back(Value::integer(size));
  for (const fs::path& file : inputs) names.items.push_back(Value::text(file.filename().string()));
  store.set("version", Value::integer(store_version));
  store.set("key", Value::text(key));
  store.set("inputs", std::move(names));
  store.set("examples", Value::integer(examples));
  store.set("tokens", Value::integer(tokens));
  store.set("sizes", std::move(sizes));
  store.set("digest", Value::text(writer.digest().text()));
  store.set("report", document_of(read.report));
  store.set("shards", std::move(shards));
  files::write(folder / store_name, to_json(store, 2) + "\n");
  log::info(folder.string(), ": a token store of ", counted(examples, "example"), " and ", counted(tokens, "token"),
            " was built");
}

// Holds the store's lock, once no other process does. nullptr: the store became whole while this one waited.
std::unique_ptr<files::Lock> wait_for(const fs::path& folder) {
  for (bool told = false;;) {
    if (files::is_file(folder / store_name)) return nullptr;
    try {
      auto lock = std::make_unique<files::Lock>(lock_of(folder), folder, "mixture.cache_dir");
      return files::is_file(folder / store_name) ? nullptr : std::move(lock);
    } catch (const UserError& error) {
      if (!error.problem.starts_with("is in use")) throw;
      if (!std::exchange(told, true)) log::info("waiting for the token store: ", error.headline());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

int64_t bytes_of(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::path& name : files::list_files_below(folder)) bytes += int64_t(files::size(folder / name));
  return bytes;
}

// Drops the stores that were not used for the longest time, but not `kept`.
void limit_cache(const fs::path& cache, int64_t limit, const fs::path& kept) {
  const std::vector<StoredTokens> stores = list_stores(cache);
  int64_t bytes = 0;
  for (const StoredTokens& store : stores) bytes += store.bytes;
  for (const StoredTokens& store : stores) {
    if (bytes <= limit) return;
    if (store.folder == kept) continue;
    try {
      remove_store(store.folder);
    } catch (const UserError&) {
      continue;  // a process builds it
    }
    bytes -= store.bytes;
    log::info(store.folder.string(), ": the token store was removed to keep mixture.cache_limit");
  }
}

}  // namespace

std::optional<StoreOptions> store_options(const MixtureConfig& mixture) {
  if (!mixture.enable_caching || !mixture.streaming || mixture.tokenization.keep_in_memory) return std::nullopt;
  StoreOptions out;
  out.cache = hub::expand_home(mixture.cache_dir);
  out.min_bytes = mixture.cache_min_bytes;
  out.limit = mixture.cache_limit;
  return out;
}

std::string store_key(const DatasetOptions& options) {
  check(options.store.has_value(), "the key of no store");
  FileDigests digests(options.store->cache / digests_name);
  return key_of(options, digests);
}

std::optional<ReadExamples> read_through_store(const DatasetOptions& options, const Prepare& prepare) {
  if (!options.store) return std::nullopt;
  const std::vector<fs::path> inputs = inputs_of(options);
  int64_t bytes = 0;
  for (const fs::path& file : inputs) bytes += int64_t(files::size(file));
  if (bytes < options.store->min_bytes) return std::nullopt;
  FileDigests digests(options.store->cache / digests_name);
  const std::string key = key_of(options, digests);
  const fs::path folder = options.store->cache / key;
  if (options.keep_origins && !files::is_file(folder / store_name)) return std::nullopt;
  if (const auto lock = wait_for(folder)) {
    build_store(folder, key, options, prepare, inputs, digests);
    if (options.store->limit) limit_cache(options.store->cache, *options.store->limit, folder);
  }
  ReadExamples out = open_store(folder, options, key, digests);
  unless_it_fails([&] { digests.save(); });
  log::info(options.section, ": ", counted(out.examples.size(), "example"), " out of the token store ",
            folder.string());
  return out;
}

std::vector<StoredTokens> list_stores(const fs::path& cache) {
  std::vector<std::pair<int64_t, StoredTokens>> found;
  for (const fs::path& folder : files::list(cache)) {
    if (!files::is_folder(folder)) continue;
    const bool whole = files::is_file(folder / store_name);
    if (!whole && !files::is_file(folder / shard_name(0))) continue;
    StoredTokens one{folder.filename().string(), folder, whole, 0, 0, bytes_of(folder), "", ""};
    const fs::path last = folder / (files::is_file(folder / used_name) ? used_name
                                    : whole                            ? store_name
                                                                       : shard_name(0));
    const int64_t used = files::stamp_of(last).changed;
    const std::time_t seconds = used / 1'000'000'000;
    std::tm parts = {};
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", ::localtime_r(&seconds, &parts));
    one.used = text;
    if (whole) {
      const Value store = parse_json(files::read(folder / store_name));
      one.examples = number_in(store, "examples"), one.tokens = number_in(store, "tokens");
      std::vector<std::string> names;
      if (const Value* const inputs = store.find("inputs"))
        for (const Value& name : inputs->items) names.push_back(name.scalar);
      one.inputs = join(names, ", ");
    }
    found.emplace_back(used, std::move(one));
  }
  std::ranges::stable_sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<StoredTokens> out;
  for (auto& [used, store] : found) out.push_back(std::move(store));
  return out;
}

std::string store_defect(const fs::path& folder) {
  if (!files::is_file(folder / store_name)) return "a build was interrupted; a run that needs it goes on";
  try {
    const Value store = parse_json(files::read(folder / store_name));
    const Value* const shards = store.find("shards");
    if (number_in(store, "version") != store_version || !shards) return "store.json is of another version";
    return files::listing_defect(folder, *shards);
  } catch (const UserError& error) {
    return error.headline();
  }
}

void remove_store(const fs::path& folder) {
  const files::Lock lock(lock_of(folder), folder, "mixture.cache_dir");
  files::remove_all(folder / store_name);  // first: what is left is no store
  files::remove_all(folder);
}

}  // namespace easydel::data

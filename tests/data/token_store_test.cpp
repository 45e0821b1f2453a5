#include "easydel/data/token_store.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/file_stamp.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/row_function.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

std::atomic<int> prepared;

// A text's bytes as tokens; of one row two examples, of some none.
Prepared bytes_of(const TypedRow& row) {
  ++prepared;
  const std::string& text = row.text.scalar;
  Prepared out;
  if (text.size() % 11 == 0) return out;
  out.cut_tokens = std::max<int64_t>(0, int64_t(text.size()) - 50);
  out.example.emplace().add_sequence(Ids(text.begin(), text.begin() + long(std::min<size_t>(text.size(), 50))));
  if (text.starts_with("row 1390")) out.further.push_back(*out.example);
  return out;
}

class Stores : public testing::Test {
 protected:
  Stores() {
    log::set_sink([this](log::Level, std::string_view line) { log_.append(line) += "\n"; });
    for (int file = 0; file < 2; ++file) {
      std::string lines;
      for (int i = 0; i < 700; ++i)
        lines += str("{\"text\": \"row ", i * (file + 1), std::string(size_t(i % 60), 'x'), "\"}\n");
      test::write_file(folder_ / str("in/", file, ".jsonl"), lines);
    }
    prepared = 0;
  }
  ~Stores() override {
    files::set_fault(nullptr);
    log::set_sink(nullptr);
  }

  DatasetOptions options(const std::string& inputs = "in", const std::string& cache = "cache") const {
    DatasetOptions out;
    for (int file = 0; file < 2; ++file)
      out.informs.emplace_back().data_files = {(folder_ / str(inputs, "/", file, ".jsonl")).string()};
    out.shuffled = true;
    out.store = StoreOptions{};
    out.store->cache = folder_ / cache;
    out.store->min_bytes = 1;
    out.store->shard_tokens = 2000;
    out.store->settings = parse_json(R"({"method": "sft"})");
    return out;
  }
  static Dataset in_memory(DatasetOptions options) {
    options.store.reset();
    return Dataset::build(options, bytes_of);
  }
  fs::path store(const DatasetOptions& options) const { return options.store->cache / store_key(options); }
  // The names and bytes of a store's files, without what says when it was used.
  static std::map<std::string, std::string> bytes_in(const fs::path& store) {
    std::map<std::string, std::string> out;
    for (const fs::path& name : files::list_files_below(store))
      if (name != "used") out[name.string()] = test::read_file(store / name);
    return out;
  }
  static void expect_same(const Dataset& one, const Dataset& other) {
    ASSERT_EQ(one.size(), other.size());
    EXPECT_EQ(one.fingerprint(), other.fingerprint());
    EXPECT_EQ(one.tokens(), other.tokens());
    EXPECT_EQ(one.labels(), other.labels());
    EXPECT_EQ(one.longest(), other.longest());
    EXPECT_EQ(one.report().rows, other.report().rows);
    EXPECT_EQ(one.report().dropped, other.report().dropped);
    EXPECT_EQ(one.report().cut_tokens, other.report().cut_tokens);
    for (int64_t epoch = 0; epoch < 2; ++epoch)
      for (int64_t i = 0; i < one.size(); ++i) {
        const Example a = one.at(one.index(epoch, i)), b = other.at(other.index(epoch, i));
        ASSERT_EQ(a.tokens, b.tokens) << i;
        ASSERT_EQ(a.labels, b.labels) << i;
        ASSERT_EQ(a.lengths, b.lengths) << i;
      }
  }

  const test::TemporaryFolder folder_;
  std::string log_;
};

TEST_F(Stores, GiveTheSameExamplesAsMemory) {
  for (const bool packs : {false, true}) {
    DatasetOptions with = options();
    if (packs) with.packing = Packing::bfd_split, with.row_length = 64, with.shuffle_documents = true;
    const Dataset built = Dataset::build(with, bytes_of), mapped = Dataset::build(with, bytes_of);
    expect_same(in_memory(with), built);
    expect_same(built, mapped);
  }
  EXPECT_GT(bytes_in(store(options())).size(), 10u) << "several shards, and store.json";
}

TEST_F(Stores, AreTokenizedOnce) {
  Dataset::build(options(), bytes_of);
  EXPECT_EQ(prepared, 1400);
  Dataset::build(options(), bytes_of);
  EXPECT_EQ(prepared, 1400);
}

TEST_F(Stores, AreNotMadeOfLittleInput) {
  DatasetOptions little = options();
  little.store->min_bytes = 1 << 20;
  Dataset::build(little, bytes_of);
  EXPECT_FALSE(fs::exists(little.store->cache));
  little.store->min_bytes = 1;
  little.keep_origins = true;  // for commands that show where rows come from
  Dataset::build(little, bytes_of);
  EXPECT_TRUE(list_stores(little.store->cache).empty());
}

// What commands show of a store is what they show of memory; nothing is prepared.
TEST_F(Stores, KnowWhereTheirRowsAre) {
  for (const bool packs : {false, true}) {
    DatasetOptions with = options();
    with.informs[0].filter = "{{ text | length != 9 }}";
    if (packs) with.packing = Packing::bfd, with.row_length = 128, with.shuffle_documents = true;
    Dataset::build(with, bytes_of);
    with.keep_origins = true;
    const Dataset memory = in_memory(with);
    prepared = 0;
    const Dataset mapped = Dataset::build(with, bytes_of);
    EXPECT_EQ(prepared, 0);
    ASSERT_EQ(mapped.size(), memory.size());
    std::vector<int64_t> rows, wanted;
    for (int64_t i = 0; i < mapped.size(); ++i) {
      const Example one = mapped.at(mapped.index(1, i)), other = memory.at(memory.index(1, i));
      EXPECT_EQ(one.tokens, other.tokens);
      for (const int64_t row : mapped.rows_of(one)) rows.push_back(row);
      for (const int64_t row : memory.rows_of(other)) wanted.push_back(row);
    }
    const std::vector<RowOrigin> found = mapped.origins(rows), known = memory.origins(wanted);
    ASSERT_EQ(found.size(), known.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].where, known[i].where) << i;
      ASSERT_EQ(found[i].inform, known[i].inform) << i;
    }
  }
}

TEST_F(Stores, AreFoundByContentsNotByPaths) {
  const std::string key = store_key(options());
  EXPECT_EQ(key.size(), 32u);
  fs::rename(folder_ / "in", folder_ / "moved");
  EXPECT_EQ(store_key(options("moved")), key) << "a moved folder";
  fs::copy(folder_ / "moved", folder_ / "copied", fs::copy_options::recursive);
  EXPECT_EQ(store_key(options("copied")), key);
  fs::last_write_time(folder_ / "moved/0.jsonl", fs::file_time_type::clock::now() - std::chrono::hours(5));
  EXPECT_EQ(store_key(options("moved")), key) << "a touched file";
  DatasetOptions other = options("moved");
  other.seed = 5, other.shuffled = false, other.packing = Packing::bfd, other.row_length = 8;
  EXPECT_EQ(store_key(other), key) << "what is done to examples is not part of it";
}

TEST_F(Stores, AreOthersIfAnythingIsThatDecidesThem) {
  std::set<std::string> keys{store_key(options())};
  const auto expect_other = [&](const DatasetOptions& changed, const char* what) {
    EXPECT_TRUE(keys.insert(store_key(changed)).second) << what;
  };
  DatasetOptions changed = options();
  changed.store->settings = parse_json(R"({"method": "sft", "chat_template": "{{ x }}"})");
  expect_other(changed, "a template");
  changed.store->settings = parse_json(R"({"method": "sft", "chat_template": "{{ y }}"})");
  expect_other(changed, "one byte of it");
  changed = options();
  changed.informs[0].num_rows = 5;
  expect_other(changed, "an inform's key");
  changed = options();
  std::swap(changed.informs[0], changed.informs[1]);
  expect_other(changed, "the order of informs");
  changed = options();
  changed.deduplicate = true;
  expect_other(changed, "deduplicate");
  changed = options();
  const fs::path function = folder_ / "f.jinja";
  for (const char* text : {"{{ text }}", "{{ text }}!"}) {
    test::write_file(function, text);
    changed.informs[0].preprocessing_fn = function.string();
    expect_other(changed, text);
  }
  changed = options();
  const fs::path library = folder_ / "plugin.so";
  register_row_function(
      "stored", [](const Value& fields) { return fields; }, library);
  for (const char* code : {"code", "changed code"}) {
    test::write_file(library, code);
    changed.tokenize_callback.reset(), changed.informs[0].preprocessing_fn = "stored";
    expect_other(changed, code);
    changed.tokenize_callback = "stored", changed.informs[0].preprocessing_fn.reset();
    expect_other(changed, code);
  }
  std::string row = test::read_file(folder_ / "in/0.jsonl");
  row[row.find("row")] = 'l';
  test::write_file(folder_ / "in/0.jsonl", row);
  expect_other(options(), "one byte of the input");
}

// A build that is killed at every shard goes on, and ends with the same bytes as an unbroken one.
TEST_F(Stores, OfAKilledBuildAreGoneOnWith) {
  Dataset::build(options("in", "whole"), bytes_of);
  const auto whole = bytes_in(store(options("in", "whole")));
  for (const int operation : {1, 5, 9, 14, 20, 27, 35, 44, 60, 80}) {
    const DatasetOptions broken = options("in", str("broken", operation));
    const pid_t child = ::fork();
    if (child == 0) {
      int done = 0;
      files::set_fault([&](files::Operation one, const fs::path& path) {
        if (one == files::Operation::look || one == files::Operation::list) return 0;
        if (path.string().find("tokens-") == std::string::npos && path.filename() != "store.json") return 0;
        if (++done == operation) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      Dataset::build(broken, bytes_of);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << operation;
    EXPECT_FALSE(fs::exists(store(broken) / "store.json"));
    prepared = 0;
    expect_same(Dataset::build(broken, bytes_of), in_memory(broken));
    EXPECT_EQ(bytes_in(store(broken)), whole) << operation;
    EXPECT_LT(prepared, operation > 40 ? 1400 + 1400 : 1 << 30) << "rows of whole shards are not tokenized again";
  }
}

// Each write, fsync and rename fails once: the error is said, and nothing is taken for whole.
TEST_F(Stores, OfAFullDiskAreNotTakenForWhole) {
  const Dataset wanted = in_memory(options());
  int failed = 0;
  for (int operation = 1;; operation += 7) {
    const DatasetOptions full = options("in", str("full", operation));
    int done = 0;
    files::set_fault([&](files::Operation one, const fs::path&) {
      if (one == files::Operation::look || one == files::Operation::list) return 0;
      return ++done == operation ? ENOSPC : 0;
    });
    const std::string refusal = test::refusal([&] { Dataset::build(full, bytes_of); });
    files::set_fault(nullptr);
    if (refusal == "(nothing was refused)") break;
    ++failed;
    EXPECT_NE(refusal.find("No space left on device"), std::string::npos) << refusal;
    expect_same(Dataset::build(full, bytes_of), wanted);
  }
  EXPECT_GT(failed, 5);
}

TEST_F(Stores, WithAFlippedBitAreRefused) {
  Dataset::build(options(), bytes_of);
  const fs::path shard = store(options()) / "tokens-00001.safetensors";
  const std::string bytes = test::read_file(shard);
  for (const size_t place : {size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    std::string broken = bytes;
    broken[place] = char(broken[place] ^ 4);
    test::write_file(shard, broken);
    const std::string told = test::refusal([&] { Dataset::build(options(), bytes_of); });
    EXPECT_TRUE(told.starts_with(store(options()).string() +
                                 ": the token store is broken: tokens-00001.safetensors is not what was written (its "
                                 "hash is different)\n"))
        << told;
    EXPECT_EQ(store_defect(store(options())),
              "tokens-00001.safetensors is not what was written (its hash is different)");
  }
  test::write_file(shard, bytes);
  EXPECT_EQ(store_defect(store(options())), "");
  expect_same(Dataset::build(options(), bytes_of), in_memory(options()));
  std::string other = test::read_file(store(options()) / "store.json");
  test::write_file(store(options()) / "store.json", test::replaced(other, "\"version\": 3", "\"version\": 7"));
  EXPECT_NE(test::refusal([&] { Dataset::build(options(), bytes_of); }).find("store.json is of another version"),
            std::string::npos);
  fs::remove(shard);
  test::write_file(store(options()) / "store.json", other);
  EXPECT_NE(test::refusal([&] { Dataset::build(options(), bytes_of); }).find("tokens-00001.safetensors is missing"),
            std::string::npos);
}

// Several processes want the same store at once: one builds, the others wait and map it.
TEST_F(Stores, AreBuiltByOneProcessWhileOthersWait) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      prepared = 0;
      const Dataset dataset = Dataset::build(options(), bytes_of);
      ::_exit(dataset.size() == 0 ? 99 : prepared == 1400 ? 1 : prepared == 0 ? 0 : 98);
    }
    children.push_back(child);
  }
  int builders = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_LE(WEXITSTATUS(status), 1);
    builders += WEXITSTATUS(status);
  }
  EXPECT_EQ(builders, 1);
  EXPECT_TRUE(files::list(folder_ / "cache").size() == 2) << "the store and the digests; no lock is left";
}

TEST_F(Stores, RefuseInputThatChangesWhileItIsRead) {
  std::atomic<bool> changed = false;
  const std::string refusal = test::refusal([&] {
    Dataset::build(options(), [&](const TypedRow& row) {
      if (prepared > 500 && !changed.exchange(true))
        test::write_file(folder_ / "in/1.jsonl", "{\"text\": \"other\"}\n");
      return bytes_of(row);
    });
  });
  EXPECT_EQ(refusal,
            "mixture.informs: an input file changed while it was read\n    run again when nothing writes to the files");
  EXPECT_TRUE(list_stores(folder_ / "cache").empty());
}

TEST_F(Stores, AreListedAndTheOldestAreDropped) {
  std::vector<DatasetOptions> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(options());
    all.back().store->settings.set("method", Value::text(str("m", i)));
    Dataset::build(all.back(), bytes_of);
  }
  std::vector<StoredTokens> stores = list_stores(folder_ / "cache");
  ASSERT_EQ(stores.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(stores[i].folder, store(all[i]));
  EXPECT_TRUE(stores[0].is_whole);
  EXPECT_EQ(stores[0].inputs, "0.jsonl, 1.jsonl");
  EXPECT_EQ(stores[0].examples, in_memory(options()).size());
  Dataset::build(all[0], bytes_of);  // used again
  DatasetOptions last = options();
  last.store->settings.set("method", Value::text("m4"));
  last.store->limit = 2 * stores[0].bytes + stores[0].bytes / 2;
  Dataset::build(last, bytes_of);
  stores = list_stores(folder_ / "cache");
  ASSERT_EQ(stores.size(), 2u);
  EXPECT_EQ(stores[0].folder, store(all[0]));
  EXPECT_EQ(stores[1].folder, store(last));
  remove_store(stores[0].folder);
  EXPECT_EQ(list_stores(folder_ / "cache").size(), 1u);
}

// What another program reads of it.
TEST_F(Stores, AreSafetensorsFiles) {
  Dataset::build(options(), bytes_of);
  const auto shard = weights::SafetensorsFile::open(store(options()) / "tokens-00000.safetensors");
  EXPECT_EQ(shard->at("tokens").dtype, weights::DType::u16);
  EXPECT_EQ(shard->names(), (std::vector<std::string>{"exception_labels", "exception_places", "learned", "lengths",
                                                      "rows", "rules", "sequence_offsets", "token_offsets", "tokens"}));
}

}  // namespace
}  // namespace easydel::data

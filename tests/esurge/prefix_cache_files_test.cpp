// The folder of a prefix cache: what was written comes back, and nothing else does.
#include "easydel/esurge/prefix_cache_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "esurge/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

const PrefixCacheIdentity identity{"fp_1", "bf16_pairs", "BF16"};

// An engine whose index has pages of every kind; a page contains its group and id.
struct Source {
  Source() : engine({}, layout(), 100000, {.vocabulary = 5, .roles_matter = true}) {
    for (int i = 0; i < 12; ++i) engine.add(request_of(text_of(3 + 2 * i, 1 + i % 3), 6)), engine.run();
  }
  static CacheLayout layout() { return {4, {full_group(), window_group(6), state_group()}, true}; }
  static void fill(int group, int32_t page, std::span<std::byte> to, int salt = 0) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = std::byte(uint8_t(page * 31 + group * 7 + int(i) + salt));
  }
  int64_t save(const fs::path& folder, int salt = 0, const PrefixCacheIdentity& as = identity) const {
    std::vector<std::vector<int32_t>> ids;
    const SavedPrefixIndex saved = index().save(ids);
    return save_prefix_cache(folder, as, layout(), saved, ids,
                             [salt](int group, int32_t page, auto to) { fill(group, page, to, salt); });
  }
  const PrefixIndex& index() const { return engine.scheduler.cache().index(); }

  FakeEngine engine;
};

// What load_prefix_cache() says, and which salt its pages have; -1: it gives nothing.
struct Loaded {
  int salt = -1;
  std::string line;
};

Loaded load(const fs::path& folder, const Source& source, const PrefixCacheIdentity& now = identity) {
  Loaded out;
  log::set_sink([&](log::Level, std::string_view line) { out.line += line; });
  const auto stored = load_prefix_cache(folder, now, Source::layout());
  log::set_sink({});
  if (!stored) return out;
  std::vector<std::vector<int32_t>> ids;
  EXPECT_EQ(stored->index.encode(Source::layout()), source.index().save(ids).encode(Source::layout()));
  for (size_t g = 0; g < ids.size(); ++g)
    for (size_t n = 0; n < ids[g].size(); ++n) {
      const auto page = stored->page(Source::layout(), int(g), int32_t(n));
      std::vector<std::byte> right(page.size());
      if (out.salt < 0) {
        Source::fill(int(g), ids[g][n], right);
        out.salt = int(uint8_t(page[0])) - int(uint8_t(right[0]));
      }
      Source::fill(int(g), ids[g][n], right, out.salt);
      EXPECT_TRUE(std::equal(page.begin(), page.end(), right.begin())) << "page " << n << " of group " << g;
    }
  return out;
}

TEST(PrefixCacheFiles, GiveBackWhatWasSaved) {
  const TemporaryFolder folder;
  const Source source;
  const fs::path cache = folder / "deep/cache";
  EXPECT_EQ(load(cache, source).line, "") << "there is none yet";
  EXPECT_TRUE(files::is_folder(cache)) << "what cannot be made is found at the start";
  EXPECT_GT(source.save(cache), 50);
  EXPECT_EQ(load(cache, source).salt, 0);
  source.save(cache, 9);
  EXPECT_EQ(load(cache, source).salt, 9);
  EXPECT_EQ(files::list(cache).size(), 2u) << "the manifest and one file";
  FakeEngine empty({}, Source::layout(), 100000);
  std::vector<std::vector<int32_t>> none;
  const SavedPrefixIndex nothing = empty.scheduler.cache().index().save(none);
  EXPECT_EQ(save_prefix_cache(cache, identity, Source::layout(), nothing, none, {}), 0);
  EXPECT_EQ(load(cache, source).salt, 9) << "an empty index replaces nothing";
}

TEST(PrefixCacheFiles, SayWhyTheyAreNotUsed) {
  const TemporaryFolder folder;
  const Source source;
  const fs::path cache = folder / "cache";
  source.save(cache);
  const std::string before = "esurge: the prefix cache in " + cache.string() + " is not used: ";
  EXPECT_EQ(load(cache, source, {"fp_2", "bf16_pairs", "BF16"}).line,
            before + "it belongs to other weights (fp_1 instead of fp_2)");
  EXPECT_EQ(load(cache, source, {"fp_2", "bf16_tile", "BF16"}).line,
            before + "its order of additions is another one (bf16_pairs instead of bf16_tile)");
  EXPECT_EQ(load(cache, source, {"fp_2", "bf16_pairs", "I8"}).line,
            before + "its keys and values have another format (BF16 instead of I8)");
  EXPECT_EQ(load(cache, source, {"fp_2", "bf16_pairs", "BF16", {1, 2, 0, 1}}).line,
            before +
                "it belongs to another layout of ranks (rank 0 of 1, part 0 of 1 instead of rank 1 of 2, part 0 "
                "of 1)");
  write_file(cache / "manifest.json", R"({"pages": "../../other.safetensors"})");
  EXPECT_EQ(load(cache, source).line, before + "it is not a prefix cache");
  write_file(cache / "manifest.json", "[]");
  EXPECT_EQ(load(cache, source).line, before + "it is not a prefix cache");
  EXPECT_EQ(refusal([&] { load_prefix_cache(cache / "manifest.json", identity, Source::layout()); }),
            (cache / "manifest.json").string() + ": cannot create this folder: a file with this name exists");
}

TEST(PrefixCacheFiles, AreUsedWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const Source source;
  const fs::path cache = folder / "cache";
  source.save(cache);
  const fs::path pages = files::list(cache).back();
  ASSERT_EQ(pages.extension(), ".safetensors");
  std::mt19937 random(3);
  int64_t unused = 0;
  for (const fs::path& path : {pages, cache / "manifest.json"}) {
    const std::string good = files::read(path);
    for (int round = 0; round < 300; ++round) {
      std::string bytes = good;
      if (round % 3 == 0)
        bytes.resize(random() % bytes.size());
      else
        bytes[random() % bytes.size()] ^= char(1 << random() % 8);
      write_file(path, bytes);
      const Loaded found = load(cache, source);  // it compares what it gets
      unused += found.salt < 0;
      EXPECT_EQ(found.salt < 0, !found.line.empty());
    }
    files::remove_all(path);
    EXPECT_EQ(load(cache, source).salt, -1);
    write_file(path, good);
    EXPECT_EQ(load(cache, source).salt, 0);
  }
  EXPECT_GT(unused, 550);
}

TEST(PrefixCacheFiles, KeepWhatTheyHadWhileTheDiskFails) {
  const Source source;
  std::set<std::string> told;
  bool done = false;
  for (int at = 1; !done; ++at) {
    const TemporaryFolder folder;
    const fs::path cache = folder / "cache";
    source.save(cache);
    int calls = 0;
    files::set_fault([&](files::Operation operation, const fs::path&) {
      const bool changes = operation != files::Operation::list && operation != files::Operation::look;
      return changes && ++calls == at ? ENOSPC : 0;
    });
    std::string error;
    try {
      source.save(cache, 5);
    } catch (const UserError& problem) {
      error = problem.what();
    }
    files::set_fault(nullptr);
    done = calls < at;
    const Loaded found = load(cache, source);
    EXPECT_EQ(found.line, "") << "the " << at << "th operation";
    // Files of a save have names of their own.
    if (!error.empty()) told.insert(replaced(error, cache.string(), "C"));
    if (done) {
      EXPECT_EQ(found.salt, 5);
      EXPECT_EQ(error, "");
    }
    EXPECT_GT(at == 1 ? calls : 1, 0);
    source.save(cache, 7);
    EXPECT_EQ(load(cache, source).salt, 7);
  }
  std::set<std::string> texts;
  for (const char* problem : {"C: cannot write", "C/.lock: cannot lock", "C/manifest.json: cannot write",
                              "C/pages-1.safetensors: cannot write", "C/pages-2.safetensors: cannot remove"})
    texts.insert(str(problem, ": No space left on device\n    free some space, or choose a folder on another disk"));
  EXPECT_EQ(told, texts);
}

}  // namespace
}  // namespace easydel::test

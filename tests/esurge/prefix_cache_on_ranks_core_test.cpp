// The prefix cache of several ranks on the disk: what one engine read, the next one on the same layout of ranks need
// not compute; another layout, or ranks that did not save together, begin without.
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "esurge/on_ranks.h"

namespace easydel::esurge {
namespace {

struct EngineRun {
  Answers answers;
  int64_t cached = 0;  // tokens of prompts
  std::string line;    // of the log, if the cache is not used
};

class PrefixCacheOnRanks : public testing::Test {
 protected:
  PrefixCacheOnRanks() : path_(write_model(folder_, llama)), cache_(folder_ / "cache") {}

  EngineRun answer(EngineSetup setup, const std::vector<Request>& asked) const {
    EngineRun out;
    setup.config.prefix_cache_path = cache_.string();
    setup.fingerprint = "fp";
    log::set_level(log::Level::info);
    log::set_sink([&](log::Level, std::string_view line) {
      if (line.find("is not used") != line.npos) out.line = line.substr(line.find("is not used"));
    });
    {
      StepEngine engine(std::move(setup));
      out.answers = run(engine, asked);
      out.cached = engine.metrics().cached_prompt_tokens;
    }
    log::set_sink({});
    return out;
  }
  // Engines one after the other on these ranks; `check` gets what the first rank's answered. `before` is called on the
  // first rank before each engine but the first.
  void on_ranks_twice(const std::vector<int64_t>& sizes, const std::vector<std::vector<Request>>& asked,
                      const std::function<void(size_t)>& before,
                      const std::function<void(const std::vector<EngineRun>&)>& check) const {
    const int ranks = int(mesh::Mesh(mesh::default_axes(), sizes).ranks());
    test::run_ranks(ranks, [&](const Meeting& meeting) {
      const auto team = join(meeting, 20, sizes);
      const auto model = load(path_, team);
      std::vector<EngineRun> runs;
      for (size_t i = 0; i < asked.size(); ++i) {
        if (team->first() && i > 0 && before) before(i);
        on_ranks(*team, meeting, model, config_of(),
                 [&](EngineSetup setup) { runs.push_back(answer(std::move(setup), asked[i])); });
      }
      if (team->first()) check(runs);
    });
  }
  static std::vector<Request> others() {
    std::vector<Request> out = requests();
    for (Request& request : out)
      for (TokenId& id : std::get<std::vector<TokenId>>(request.prompt)) id = (id + 1) % 96;
    return out;
  }

  test::TemporaryFolder folder_;
  const fs::path path_, cache_;
};

TEST_F(PrefixCacheOnRanks, IsThereForTheNextEngineOfTheSameLayout) {
  for (const auto& sizes : std::vector{by_tensor, by_data, by_both}) {
    SCOPED_TRACE(testing::PrintToString(sizes));
    fs::remove_all(cache_);
    on_ranks_twice(sizes, {requests(), requests()}, {}, [&](const std::vector<EngineRun>& runs) {
      EXPECT_EQ(runs[0].answers, runs[1].answers);
      EXPECT_EQ(runs[0].answers.tokens, alone(path_).tokens);
      EXPECT_GT(runs[1].cached, runs[0].cached + 40);
      EXPECT_EQ(runs[0].line + runs[1].line, "");
    });
  }
  // What data parts have is not stored twice.
  EXPECT_TRUE(fs::exists(cache_ / "rank-3/manifest.json"));
}

TEST_F(PrefixCacheOnRanks, IsNotUsedByAnotherLayout) {
  const std::string begin = "is not used: it belongs to another layout of ranks (rank 0 of 2, part 0 of 1 instead of ";
  on_ranks_twice(by_tensor, {requests()}, {}, [&](const std::vector<EngineRun>&) {});
  test::run_ranks(1, [&](const Meeting&) {
    const EngineRun one = answer(setup_of(load(path_, Team::alone()), config_of()), {});
    EXPECT_EQ(one.line, begin + "rank 0 of 1, part 0 of 1)");
  });
  on_ranks_twice(by_data, {requests()}, {}, [&](const std::vector<EngineRun>& runs) {
    EXPECT_EQ(runs[0].line, begin + "rank 0 of 2, part 0 of 2)");
    EXPECT_EQ(runs[0].answers.tokens, alone(path_).tokens);
  });
}

TEST_F(PrefixCacheOnRanks, IsNotUsedIfTheRanksDidNotSaveItTogether) {
  const fs::path second = cache_ / "rank-1", aside = folder_ / "aside";
  const auto before = [&](size_t i) {
    if (i == 1) fs::rename(second, aside);
    if (i == 3) fs::remove_all(second), fs::rename(aside, second);
  };
  on_ranks_twice(
      by_tensor, {requests(), others(), others(), others()}, before, [&](const std::vector<EngineRun>& runs) {
        EXPECT_EQ(runs[1].line, "is not used: rank 1: prefix cache: there is none");
        EXPECT_EQ(runs[2].line, "") << "both have saved again";
        EXPECT_GT(runs[2].cached, runs[1].cached + 40);
        EXPECT_EQ(runs[3].line,
                  "is not used: rank 1: prefix cache: it was not saved together with that of the first rank");
        EXPECT_EQ(runs[3].cached, runs[1].cached);
        EXPECT_EQ(runs[1].answers, runs[2].answers);
        EXPECT_EQ(runs[1].answers, runs[3].answers);
      });
}

}  // namespace
}  // namespace easydel::esurge

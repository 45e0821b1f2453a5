// Weights that change while an engine on several ranks runs: all ranks answer with the new ones, or all with the old.
#include <gtest/gtest.h>

#include <map>

#include "easydel/base/error.h"
#include "esurge/on_ranks.h"

namespace easydel::esurge {
namespace {

// Folders without weights, whose values come from a seed.
uint64_t seed_of(const fs::path& folder) { return folder.filename() == "new" ? 8 : 7; }

class NewWeightsOnRanks : public testing::Test {
 protected:
  NewWeightsOnRanks() {
    for (const char* const name : {"old", "new", "wide"}) {
      fs::create_directory(folder_ / name);
      test::write_file(folder_ / name / "config.json", llama);
    }
    test::write_file(folder_ / "wide/config.json", test::replaced(llama, "\"vocab_size\": 96", "\"vocab_size\": 97"));
  }

  Answers expected(const char* name) const {
    const fs::path path = folder_ / name;
    StepEngine engine(setup_of(load(path, Team::alone(), seed_of(path)), config_of()));
    return run(engine, requests());
  }
  // `lead` on the first of two ranks; the second one reads `instead` of a folder of this name, if it is given.
  void on_two_ranks(const std::vector<int64_t>& sizes,
                    const std::function<void(StepEngine& engine, const std::shared_ptr<const Team>& team)>& lead,
                    const std::map<std::string, std::string>& instead = {}) {
    test::run_ranks(2, [&](const Meeting& meeting) {
      const auto team = join(meeting, 20, sizes);
      const auto read = [&](const fs::path& asked) {
        const auto other = instead.find(asked.filename().string());
        const fs::path path = other == instead.end() ? asked : folder_ / other->second;
        return load(path, team, seed_of(path));
      };
      on_ranks(
          *team, meeting, load(folder_ / "old", team), config_of(),
          [&](EngineSetup setup) {
            setup.fingerprint = "old";
            StepEngine engine(std::move(setup));
            lead(engine, team);
          },
          read);
    });
  }
  // As Engine::update_model_weights does it.
  void update(StepEngine& engine, const std::shared_ptr<const Team>& team, const char* name,
              bool names_folder = true) const {
    const fs::path path = folder_ / name;
    const auto model = load(path, team, seed_of(path));
    engine.await_new_weights(KnownRequests::finish);
    while (!engine.has_left_weights()) engine.step();
    engine.take_new_weights([&] { return NewWeights{model, name, names_folder ? path : fs::path()}; });
  }

  test::TemporaryFolder folder_;
};

TEST_F(NewWeightsOnRanks, AnswerWhatComesLater) {
  for (const auto& sizes : {by_tensor, by_data}) {
    on_two_ranks(sizes, [&](StepEngine& engine, const std::shared_ptr<const Team>& team) {
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
      RequestOutput running;
      engine.add(requests()[5], [&](RequestOutput output) { running = std::move(output); });
      engine.step();
      update(engine, team, "new");
      EXPECT_EQ(running.fingerprint, "old");
      EXPECT_EQ(running.outputs.at(0).token_ids, expected("old").tokens.back());
      EXPECT_EQ(run(engine, requests()).tokens, expected("new").tokens) << "and not from pages of the old ones";
      EXPECT_NE(expected("new").tokens, expected("old").tokens);
      EXPECT_EQ(engine.info().fingerprint, "new");
      update(engine, team, "old");
      EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens) << "and back";
    });
  }
}

TEST_F(NewWeightsOnRanks, AreTakenByAllRanksOrByNone) {
  const std::string remedy = "\n    every rank reads the folder itself: give all of them the same one";
  on_two_ranks(
      by_tensor,
      [&](StepEngine& engine, const std::shared_ptr<const Team>& team) {
        EXPECT_EQ(test::refusal([&] { update(engine, team, "new"); }),
                  "model: not all ranks can read the new weights: rank 1: model: the new weights have a vocabulary of "
                  "97 tokens, the engine's of 96" +
                      remedy);
        EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
        EXPECT_EQ(engine.info().fingerprint, "old");
        EXPECT_EQ(
            test::refusal([&] { update(engine, team, "wide"); }),
            "model: the new weights have a vocabulary of 97 tokens, the engine's of 96\n    make an engine for it");
        EXPECT_EQ(test::refusal([&] { update(engine, team, "old", /*names_folder=*/false); }),
                  "model: new weights from memory for an engine on several ranks are not built yet\n    give a folder");
        EXPECT_EQ(run(engine, requests()).tokens, expected("old").tokens);
      },
      {{"new", "wide"}});
}

}  // namespace
}  // namespace easydel::esurge

// Ranks that read their parts of different models of one shape: the engine does not begin, and takes no such weights.
#include <gtest/gtest.h>

#include <csignal>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "esurge/on_ranks.h"
#include "support/changed_weights.h"

namespace easydel::esurge {
namespace {

// Only this matrix differs, which each rank has a part of; norms and embeddings are the same.
const std::string changed = "model.layers.1.mlp.up_proj.weight";

class OtherWeightsOnRanks : public testing::Test {
 protected:
  // Folders "first", "copy" with the same bytes, "other" with other weights, "theta" with another key of config.json.
  void write_models(const Team& team) const {
    if (team.first()) {
      const fs::path first = folder_ / "first";
      fs::create_directory(folder_ / "random");
      test::write_file(folder_ / "random/config.json", llama);
      models::save_model(*load(folder_ / "random", Team::alone()), first);
      test::copy_with_changed_weights(first, folder_ / "copy", "");
      test::copy_with_changed_weights(first, folder_ / "other", changed);
      test::copy_with_changed_weights(first, folder_ / "theta", "");
      const std::string config = test::read_file(first / "config.json");
      test::write_file(folder_ / "theta/config.json", test::replaced(config, "{", "{\"rope_theta\": 500,"));
    }
    team.all().barrier();
  }
  // What the first rank, with "first", says of the second one with this folder; "": the engine answers.
  std::string refusal_of(const std::string& name, const std::vector<int64_t>& sizes = by_tensor) const {
    const fs::path said = folder_ / "said";
    test::run_ranks(2, [&](const Meeting& meeting) {
      const auto team = join(meeting, 20, sizes);
      write_models(*team);
      on_ranks(*team, meeting, load(folder_ / (team->first() ? "first" : name), team), config_of(),
               [&](EngineSetup setup) {
                 std::string text;
                 try {
                   StepEngine engine(std::move(setup));
                   EXPECT_EQ(run(engine, requests()).tokens, alone(folder_ / "first").tokens);
                 } catch (const UserError& error) {
                   text = error.what();
                 }
                 test::write_file(said, text);
               });
    });
    const std::string out = fs::exists(said) ? test::read_file(said) : "(nothing)";
    for (const char* const each : {"said", "random", "first", "copy", "other", "theta"}) fs::remove_all(folder_ / each);
    return out;
  }

  test::TemporaryFolder folder_;
};

const std::string begin = "esurge: the ranks do not compute the same: rank 1 has other weights than the first rank: ",
                  end = " differs\n    give every rank the same model";

TEST_F(OtherWeightsOnRanks, DoNotBegin) {
  for (const auto& sizes : {by_tensor, by_data}) EXPECT_EQ(refusal_of("other", sizes), begin + changed + end);
  EXPECT_EQ(refusal_of("theta"), begin + "rope_theta of config.json" + end);
}

TEST_F(OtherWeightsOnRanks, BeginIfTheyHaveTheSameBytesInOtherFiles) {
  EXPECT_EQ(refusal_of("first"), "");
  EXPECT_EQ(refusal_of("copy"), "");
}

TEST_F(OtherWeightsOnRanks, AreNotTakenWhileTheEngineRuns) {
  test::run_ranks(2, [&](const Meeting& meeting) {
    const auto team = join(meeting);
    write_models(*team);
    const auto load_other = [&](const fs::path& asked) {
      return load(asked.filename() == "copy" ? folder_ / "other" : asked, team);
    };
    on_ranks(
        *team, meeting, load(folder_ / "first", team), config_of(),
        [&](EngineSetup setup) {
          setup.fingerprint = "first";
          StepEngine engine(std::move(setup));
          const auto update = [&](const char* name) {
            const fs::path path = folder_ / name;
            engine.await_new_weights(KnownRequests::finish);
            engine.take_new_weights([&] { return NewWeights{load(path, team), name, path}; });
          };
          EXPECT_EQ(test::refusal([&] { update("copy"); }),
                    "model: not all ranks can take the new weights: rank 1 has other weights than the first rank: " +
                        changed + end.substr(0, end.find('\n')) +
                        "\n    every rank reads the folder itself: give all of them the same one");
          EXPECT_EQ(engine.info().fingerprint, "first");
          const auto before = alone(folder_ / "first").tokens, after = alone(folder_ / "other").tokens;
          EXPECT_NE(before, after);
          EXPECT_EQ(run(engine, requests()).tokens, before);
          update("other");
          EXPECT_EQ(run(engine, requests()).tokens, after);
        },
        load_other);
  });
}

// Killed before it is asked for its part: while weights are sent, or while the folder is read.
TEST_F(OtherWeightsOnRanks, ARankThatIsKilledWhileWeightsChangeEndsTheEngine) {
  for (const bool from_memory : {true, false}) {
    SCOPED_TRACE(from_memory);
    const auto body = [&](const Meeting& meeting) {
      const auto team = join(meeting);
      write_models(*team);
      if (!team->first()) test::write_file(folder_ / "pid", std::to_string(getpid()));
      on_ranks(*team, meeting, load(folder_ / "first", team), config_of(), [&](EngineSetup setup) {
        StepEngine engine(std::move(setup));
        RequestOutput waiting;
        engine.await_new_weights(KnownRequests::finish);
        engine.add(requests()[0], [&](RequestOutput output) { waiting = std::move(output); });
        const Clock::time_point start = Clock::now();
        const std::string refused = test::refusal([&] {
          engine.take_new_weights([&] {
            ::kill(std::stoi(test::read_file(folder_ / "pid")), SIGKILL);
            return from_memory ? NewWeights{load(folder_ / "other", Team::alone()), "other"}
                               : NewWeights{load(folder_ / "other", team), "other", folder_ / "other"};
          });
        });
        EXPECT_EQ(refused,
                  "esurge: rank 1 has ended\n    see the errors of the other ranks, and start all of them again");
        while (engine.step()) {
        }
        EXPECT_EQ(waiting.error, "rank 1 has ended");
        EXPECT_LT(seconds_since(start), 10);
      });
    };
    EXPECT_EQ(test::exits_of_ranks(2, body), (std::vector<int>{0, 128 + SIGKILL}));
    for (const char* const each : {"random", "first", "copy", "other", "theta"}) fs::remove_all(folder_ / each);
  }
}

}  // namespace
}  // namespace easydel::esurge

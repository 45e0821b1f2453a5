#include "easydel/train/joint_error.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "train/sampled_run.h"

namespace easydel::train {
namespace {

std::shared_ptr<const collective::Team> team_of(const test::Meeting& meeting) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 60;
  return collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), {2, 1, 1, 1, 1}), options);
}

TEST(JointError, IsThrownByAllRanks) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    const auto team = team_of(meeting);
    const auto fails_on = [&](int64_t rank) {
      return test::refusal([&] {
        together(team->all(), [&] {
          if (team->rank() == rank) refuse("here", "went wrong", "mend it");
        });
      });
    };
    for (const int64_t rank : {0, 1})
      EXPECT_EQ(fails_on(rank), team->rank() == rank
                                    ? "here: went wrong\n    mend it"
                                    : "run: another rank could not go on\n    its own message says why");
    EXPECT_EQ(test::refusal([&] { together(team->all(), [] {}); }), "(nothing was refused)");
  });
}

// The first rank asks the program, which dies after one generation: both end at once, and what was trained is saved.
TEST(JointError, AProgramThatDiesEndsAllRanksAfterASave) {
  const test::TemporaryFolder folder;
  const std::string program = (folder / "reward.sh").string();
  test::write_file(
      program,
      "for i in 1 2 3 4; do read line; id=$(echo \"$line\" | sed 's/.*\"id\": *\\([0-9]*\\).*/\\1/'); echo "
      "\"{\\\"id\\\": $id, \\\"reward\\\": $i}\"; done; read line; exit 3\n");
  const std::string keys =
      "trainer_type: grpo, total_batch_size: 4, num_return_sequences: 4, max_training_steps: 3, rewards: [{type: "
      "program, "
      "name: judge, command: [sh, \"" +
      program + "\"]}]";
  test::sampled_run(folder.path(), keys, "");  // writes the files that both ranks read
  test::run_ranks(2, [&](const test::Meeting& meeting) {
    TrainerParts parts = test::sampled_run(folder.path(), keys, "");
    parts.load.team = team_of(meeting);
    parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
    Trainer trainer(std::move(parts));
    bool joint = false;
    std::string text;
    try {
      trainer.run();
    } catch (const JointError& error) {
      joint = true, text = error.what();
    }
    EXPECT_TRUE(joint);
    EXPECT_NE(text.find(meeting.world.rank == 0 ? "judge" : "another rank could not go on"), std::string::npos) << text;
  });
  EXPECT_TRUE(std::filesystem::exists(folder / "out" / "small" / "run-1" / "state.json"));
}

}  // namespace
}  // namespace easydel::train

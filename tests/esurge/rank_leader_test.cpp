// What the first rank tells the others besides steps, as a rank at the other end of a socket reads it.
#include "easydel/esurge/rank_leader.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

class LeaderOfOne : public testing::Test {
 protected:
  LeaderOfOne() {
    int ends[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    other_.emplace(ends[1], "the first rank");
    std::vector<RankConnection> others;
    others.emplace_back(ends[0], "rank 1");
    leader_ = std::make_unique<RankLeader>(std::move(others), std::vector<int64_t>{0, 0},
                                           RankLimits{.start_seconds = 5, .step_seconds = 5});
  }
  StepShared shared_of_step() {
    leader_->begin_step({}, {}, {}, {});
    return decode_step(other_->receive(5), {}).shared;
  }

  std::optional<RankConnection> other_;
  std::unique_ptr<RankLeader> leader_;
};

TEST_F(LeaderOfOne, NamesOnceWhatIsGone) {
  auto adapter = std::make_shared<int>(), text = std::make_shared<int>(), kept = std::make_shared<int>();
  leader_->know_adapter(7, adapter);
  leader_->know_adapter(8, kept);
  leader_->know_text(3, text);
  StepShared shared = shared_of_step();
  EXPECT_TRUE(shared.gone_adapters.empty() && shared.gone_texts.empty());
  adapter = text = nullptr;
  shared = shared_of_step();
  EXPECT_EQ(shared.gone_adapters, std::vector<uint64_t>{7});
  EXPECT_EQ(shared.gone_texts, std::vector<uint64_t>{3});
  shared = shared_of_step();
  EXPECT_TRUE(shared.gone_adapters.empty() && shared.gone_texts.empty());
}

TEST_F(LeaderOfOne, SaysWhatARankCannotCarryOutAndGoesOn) {
  const auto answered = [&](const StepReply& reply) {
    const auto given = std::async(std::launch::async, [&] {
      EXPECT_EQ(decode_order(other_->receive(5)), RankOrder(LoadWeights{"new"}));
      other_->send(encode(reply), 5);
    });
    return leader_->give(LoadWeights{"new"});
  };
  EXPECT_EQ(answered({}), "");
  EXPECT_EQ(answered({0, 0, "new: has no config.json"}), "rank 1: new: has no config.json");
  EXPECT_EQ(leader_->lost(), "");
  other_.reset();
  EXPECT_THROW(leader_->give(LoadWeights{"new"}), UserError);
  EXPECT_EQ(leader_->lost(), "rank 1 has ended");
}

TEST_F(LeaderOfOne, DoesItsPartOfAnOrderWhileTheOthersDoTheirs) {
  const auto asked = [&](const StepReply& reply, const std::function<void()>& own) {
    const auto given = std::async(std::launch::async, [&] {
      EXPECT_EQ(decode_order(other_->receive(5)), RankOrder(DescribeWeights{true}));
      other_->send(encode(reply), 5);
    });
    return leader_->ask(DescribeWeights{true}, own);
  };
  bool done = false;
  const auto answers = asked({.text = "weights"}, [&] { done = true; });
  EXPECT_TRUE(done);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].rank + " " + answers[0].text, "rank 1 weights");
  EXPECT_THROW(asked({.error = "no file"}, {}), UserError);
  EXPECT_EQ(leader_->lost(), "");
  EXPECT_THROW(asked({}, [] { throw std::runtime_error("no memory"); }), UserError);
  EXPECT_EQ(leader_->lost(), "the first rank failed: no memory");
}

}  // namespace
}  // namespace easydel::esurge

// Several engines on another rank: what ends one ends all of them.
#include "easydel/elarge/engine_followers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <optional>

#include "easydel/base/error.h"

namespace easydel::elarge {
namespace {

// Follows until `ends` says so, or it is stopped.
class Fake final : public EngineFollower {
 public:
  Fake(std::vector<std::string>& events, std::string name, std::optional<std::string> error, bool ends)
      : events_(events), name_(std::move(name)), error_(std::move(error)), ends_(ends) {}
  void follow() override {
    if (error_) refuse("esurge", *error_);
    if (ends_) return;
    std::unique_lock lock(mutex_);
    const bool in_time = came_.wait_for(lock, std::chrono::seconds(20), [&] { return stopped_; });
    events_.push_back(name_ + (in_time ? " stopped" : " was not stopped"));
    refuse("esurge", "the first rank has ended");
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    came_.notify_all();
  }

 private:
  std::vector<std::string>& events_;
  std::string name_;
  std::optional<std::string> error_;
  bool ends_;
  std::mutex mutex_;
  std::condition_variable came_;
  bool stopped_ = false;
};

std::string error_of(EngineFollowers& engines) {
  try {
    engines.wait();
  } catch (const UserError& error) {
    return error.headline();
  }
  return "";
}

TEST(EngineFollowers, EndWhenAllHaveEnded) {
  std::vector<std::string> events;
  EngineFollowers engines;
  for (const char* const name : {"a", "b"}) engines.add(std::make_unique<Fake>(events, name, std::nullopt, true));
  EXPECT_EQ(error_of(engines), "");
  EXPECT_TRUE(events.empty());
}

TEST(EngineFollowers, OneThatFailsStopsTheOthersAndSaysWhy) {
  for (const bool first_fails : {true, false}) {
    SCOPED_TRACE(first_fails);
    std::vector<std::string> events;
    EngineFollowers engines;
    const auto fails = [&] { engines.add(std::make_unique<Fake>(events, "b", "out of memory", false)); };
    if (first_fails) fails();
    engines.add(std::make_unique<Fake>(events, "a", std::nullopt, false));
    if (!first_fails) fails();
    EXPECT_EQ(error_of(engines), "esurge: out of memory");
    EXPECT_EQ(events, std::vector<std::string>{"a stopped"});
  }
}

TEST(EngineFollowers, LeaveSignalsToTheFirstRankMeanwhile) {
  std::vector<std::string> events;
  {
    EngineFollowers engines;
    engines.add(std::make_unique<Fake>(events, "a", std::nullopt, false));
    EXPECT_EQ(std::raise(SIGTERM), 0);
  }
  EXPECT_EQ(events, std::vector<std::string>{"a stopped"}) << "the destructor does it";
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

}  // namespace
}  // namespace easydel::elarge

// The engines of the first rank that another rank computes with at the same time. No torch.
#pragma once

#include <csignal>

#include <array>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace easydel::elarge {

class Session;

// What a rank other than the first does for an engine.
class EngineFollower {
 public:
  virtual ~EngineFollower() = default;
  // Computes what the first rank's engine asks for, until that ends, and loads the adapters and weights that it names.
  // On any thread. UserError: they cannot go on.
  virtual void follow() = 0;
  // From another thread: ends follow() with an error, and the first rank's engine with it.
  virtual void stop() = 0;
};

// From the first add() on, signals that end a run are left to the first rank.
class EngineFollowers {
 public:
  EngineFollowers() = default;
  ~EngineFollowers();  // stops those that run
  EngineFollowers(const EngineFollowers&) = delete;

  // Begins to follow, on a thread of its own.
  void add(std::unique_ptr<EngineFollower> engine);
  // Until all have ended. If one fails the others are stopped, and its error comes back.
  void wait();

 private:
  struct One {
    std::unique_ptr<EngineFollower> engine;
    std::thread thread = {};
  };
  void fail(std::exception_ptr error);
  void join();

  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
  std::array<void (*)(int), signals.size()> before_ = {};
  std::mutex mutex_;  // of what follows
  std::list<One> all_;
  std::exception_ptr failed_;  // the first error
};

// On a rank other than the first: computes with the engine that the first one's session makes, until that ends.
// Collective. UserError: the engine's ranks cannot go on.
void follow_engine(Session& session);

}  // namespace easydel::elarge

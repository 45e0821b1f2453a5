#include "easydel/train/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace easydel::train {
namespace {

TEST(Interrupt, NotesTheFirstSignalAndGivesTheOldHandlersBack) {
  static volatile std::sig_atomic_t other = 0;
  const auto before = std::signal(SIGTERM, [](int signal) { other = signal; });
  {
    const Interrupt interrupt;
    EXPECT_EQ(interrupt.signal(), 0);
    std::raise(SIGTERM);
    EXPECT_EQ(interrupt.signal(), SIGTERM);
    EXPECT_EQ(other, 0);
  }
  std::raise(SIGTERM);
  EXPECT_EQ(other, SIGTERM);
  std::signal(SIGTERM, before);
  EXPECT_EQ(Interrupt().signal(), 0) << "a new one has seen nothing";
}

TEST(Interrupt, NotesEverySignalThatEndsARun) {
  static volatile std::sig_atomic_t missed = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const auto before = std::signal(signal, [](int other) { missed = other; });
    {
      const Interrupt interrupt;
      std::raise(signal);
      EXPECT_EQ(interrupt.signal(), signal);
      EXPECT_TRUE(interrupt.has_come());
    }
    std::signal(signal, before);
    EXPECT_EQ(missed, 0) << "the handler before it got signal " << signal;
  }
}

TEST(Interrupt, SaysAtOnceThatTheRunIsSaved) {
  const auto said = [](int signal, bool speaks) {
    testing::internal::CaptureStderr();
    {
      const Interrupt interrupt(speaks);
      std::raise(signal);
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(SIGTERM, true),
            "stopping: the run is saved after this micro-batch; a second signal ends it without saving\n");
  EXPECT_EQ(said(SIGTERM, false), "") << "only the first rank speaks";
  EXPECT_EQ(said(SIGPIPE, true), "") << "nobody reads it";
}

TEST(InterruptDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        std::raise(SIGINT);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace easydel::train

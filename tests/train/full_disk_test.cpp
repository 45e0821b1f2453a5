// The size of a checkpoint is compared with what the disk has free before the first step. The disk is played by
// statvfs(2), which this program replaces for all of its libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <atomic>

#include "train/small_run.h"

namespace {
std::atomic<int64_t> free_for_tests = -1;  // bytes; -1: what there is
}

extern "C" int statvfs(const char* path, struct statvfs* disk) noexcept {
  static const auto next = reinterpret_cast<int (*)(const char*, struct statvfs*)>(dlsym(RTLD_NEXT, "statvfs"));
  const int status = next(path, disk);
  if (status == 0 && free_for_tests >= 0) disk->f_frsize = 1, disk->f_bavail = fsblkcnt_t(free_for_tests.load());
  return status;
}

namespace easydel::train {
namespace {

TEST(FullDisk, IsSaidBeforeTheFirstStep) {
  const test::TemporaryFolder folder;
  const auto said = [&](int64_t bytes, const char* keys) {
    free_for_tests = bytes;
    const test::LogLines log;
    const Trainer trainer(test::small_run(folder.path(), keys));
    free_for_tests = -1;
    const size_t at = log.text.find("a checkpoint needs");
    return std::pair(trainer.plan().checkpoint_bytes,
                     at == std::string::npos ? "" : test::replaced(log.text.substr(at), folder.path().string(), "DIR"));
  };
  const char *whole = "{max_training_steps: 2}",
             *without_state = "{max_training_steps: 2, save_optimizer_state: false}";
  const auto [needed, nothing] = said(-1, whole);
  EXPECT_EQ(nothing, "");
  EXPECT_GT(needed, 0);
  EXPECT_EQ(said(needed, whole).second, "") << "just enough";
  EXPECT_EQ(said(needed - 1, whole).second,
            str("a checkpoint needs ", bytes_text(needed), ", and the disk has ", bytes_text(needed - 1),
                " free; free some space, or choose another trainer.save_directory\n"));
  const auto [less, enough] = said(needed - 1, without_state);
  EXPECT_LT(less, needed / 2) << "AdamW's two moments are twice the weights";
  EXPECT_EQ(enough, "");
}

// What is announced is what is written.
TEST(FullDisk, IsComparedWithWhatACheckpointTakes) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  Trainer trainer(test::small_run(folder.path(), "{max_training_steps: 1}"));
  const auto announced = double(trainer.plan().checkpoint_bytes);
  trainer.run();
  double written = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out/small/run-1"))
    if (entry.path().extension() == ".safetensors") written += double(entry.file_size());
  EXPECT_NEAR(announced / written, 1, 0.05);
}

}  // namespace
}  // namespace easydel::train

// The folder of a run's checkpoints: run-{step}, each whole or not there. Written aside, hashed, renamed; a broken one
// is found by its hashes and skipped. What is inside is the caller's. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace easydel::files {
class Lock;
}

namespace easydel::train {

class Checkpoints {
 public:
  // What is wrong with the content of a checkpoint whose files have their hashes, given the names that its manifest
  // lists; empty: nothing. May throw a UserError instead.
  using Inspect =
      std::function<std::string(const std::filesystem::path& checkpoint, const std::set<std::string>& listed)>;

  explicit Checkpoints(std::filesystem::path folder, std::optional<int64_t> limit = std::nullopt, Inspect inspect = {});

  // Holds the folder until the last copy of this object is destroyed. UserError if another process holds it.
  void lock();
  // Removes what broken saves and killed processes have left, and undoes a half-done replacement. Call once before the
  // first save, with the lock. UserError if the folder cannot be listed.
  void tidy() const;
  // `write` fills an empty folder. The bytes that it hands to files::Writer are hashed into manifest.json; then the
  // folder appears as run-{step}, and prune() follows. UserError where the disk fails; then every earlier checkpoint
  // still stands.
  std::filesystem::path save(int64_t step, const std::function<void(const std::filesystem::path&)>& write) const;
  // Deletes the oldest checkpoints before `step` beyond the limit. What cannot be deleted is warned of.
  void prune(int64_t step) const;
  // The checkpoint of this step is not deleted by prune(), and does not count in the limit; nothing: there is none
  // such.
  void protect(std::optional<int64_t> step) { protected_ = step; }
  // For a state that no run should resume from: as save() into, or renames run-{step} to, diverged_path(step).
  void save_diverged(int64_t step, const std::function<void(const std::filesystem::path&)>& write) const;
  void rename_diverged(int64_t step) const;
  // The newest good one; warns of those that it skips. Nothing: there is none. UserError if the folder cannot be
  // listed, or if there are checkpoints and the disk lets none be read: starting anew would bury them.
  std::optional<std::filesystem::path> newest() const;
  // The one with the highest step, whether or not it is good.
  std::optional<std::filesystem::path> last() const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path path_of(int64_t step) const;
  std::filesystem::path diverged_path(int64_t step) const;  // run-{step}.diverged
  void remove(const std::filesystem::path& checkpoint) const;

 private:
  void write_whole(const std::filesystem::path& whole,
                   const std::function<void(const std::filesystem::path&)>& write) const;

  std::filesystem::path folder_;
  std::optional<int64_t> limit_, protected_;
  Inspect inspect_;
  std::shared_ptr<files::Lock> lock_;
};

// What is wrong with a checkpoint: no manifest, a missing file, another hash, something that cannot be read. Empty:
// nothing.
std::string defect_of(const std::filesystem::path& checkpoint);

}  // namespace easydel::train

// The folder of a run's checkpoints: run-{step}, each whole or not there. Written aside, hashed, renamed; a broken one
// is found by its hashes and skipped. What is inside is the caller's. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace easydel::train {

class Checkpoints {
 public:
  explicit Checkpoints(std::filesystem::path folder, std::optional<int64_t> limit = std::nullopt);

  // Removes what broken saves have left, and undoes a half-done replacement. Call once before the first save.
  void tidy() const;
  // `write` fills an empty folder; what it wrote is hashed into manifest.json and appears as run-{step}. Then the
  // oldest beyond the limit are deleted, never this one. UserError where the disk fails; then every earlier one still
  // stands.
  std::filesystem::path save(int64_t step, const std::function<void(const std::filesystem::path&)>& write) const;
  // The newest good one; says which it skipped and why.
  std::optional<std::filesystem::path> newest() const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path path_of(int64_t step) const;
  void remove(const std::filesystem::path& checkpoint) const;

 private:
  std::filesystem::path folder_;
  std::optional<int64_t> limit_;
};

// What is wrong with a checkpoint: no manifest, a missing file, another hash. Empty: nothing.
std::string defect_of(const std::filesystem::path& checkpoint);

}  // namespace easydel::train

// The ranks of a run on their mesh, and the groups in which they exchange tensors. With one rank there is no process
// group, no store and no socket: every group is this rank alone and every operation returns at once. Calls are
// collective: all members of a group make the same calls in the same order, one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "easydel/mesh/layout.h"
#include "easydel/mesh/mesh.h"
#include "easydel/mesh/world.h"
#include "easydel/tensor/torch.h"

namespace easydel::collective {

enum class Reduce : uint8_t { sum, max };

// The ranks that differ only along some axes of the mesh. Copies refer to the same group. Errors: UserError if the
// other ranks cannot be reached; Bug for a tensor that cannot be sent, and with EASYDEL_DEBUG_COLLECTIVES=1 if the
// ranks make different calls (operation, dtype, shape).
class Group {
 public:
  Group() = default;  // this rank alone

  int64_t rank() const;  // index in the group
  int64_t size() const;
  bool alone() const { return impl_ == nullptr; }

  // In place. bf16 and fp16 are summed in fp32 and rounded once.
  void all_reduce(const Tensor& x, Reduce reduce = Reduce::sum) const;
  // Concatenates the parts of all ranks along `dimension`; their shapes must be equal.
  Tensor all_gather(const Tensor& x, int64_t dimension) const;
  // Sums x over ranks; this rank gets its part of `dimension`, which the group's size must divide.
  Tensor reduce_scatter(const Tensor& x, int64_t dimension) const;
  void broadcast(const Tensor& x, int64_t root) const;  // in place
  void barrier() const;
  // This rank's part of `dimension`, as a view; nothing is sent.
  Tensor part(const Tensor& x, int64_t dimension) const;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct TeamOptions {
  std::filesystem::path file_store;  // ranks of one machine meet in this file instead of at the master's port (tests)
  double connect_seconds = 60;       // how long to wait for all ranks
  double timeout_seconds = 1800;     // per operation; overridden by EASYDEL_COLLECTIVE_TIMEOUT_SECONDS
  // For tests: returns true if attempt n (from 0) to make a group should fail on this rank.
  std::function<bool(int attempt)> fault = nullptr;
};

class Team {
 public:
  // A single rank.
  static std::shared_ptr<const Team> alone();
  // Connects to the other ranks of `world`; the mesh must have that size. UserError if they do not come. The process
  // ignores SIGPIPE from then on.
  static std::shared_ptr<const Team> join(const mesh::World& world, mesh::Mesh mesh, const TeamOptions& options = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const mesh::Mesh& mesh() const { return mesh_; }
  int64_t rank() const { return rank_; }
  int64_t size() const { return mesh_.ranks(); }
  bool first() const { return rank_ == 0; }

  // The same ranks on another mesh, with groups of their own and this limit for each operation. Collective.
  std::shared_ptr<const Team> on_mesh(mesh::Mesh mesh, double timeout_seconds) const;

  // The group of this rank along the (fused) axes. The first call makes it and is collective.
  Group group(const mesh::Axes& axes) const;
  Group all() const { return group(mesh_.names()); }

  // This rank's rows of a batch are part `batch_part()` of `batch_parts()`.
  int64_t batch_part() const { return mesh_.index(mesh::batch_axes(), rank_); }
  int64_t batch_parts() const { return mesh_.size(mesh::batch_axes()); }

  // For a resolved spec: the shard of this rank as a view of the whole tensor, and the whole tensor from all shards
  // (collective; a new tensor on every rank).
  Tensor cut(const Tensor& whole, const mesh::PartitionSpec& layout) const;
  Tensor whole(const Tensor& part, const mesh::PartitionSpec& layout) const;

 private:
  struct Impl;
  Team(mesh::Mesh mesh, int64_t rank);
  mesh::Mesh mesh_;
  int64_t rank_ = 0;
  std::unique_ptr<Impl> impl_;  // null: a single rank
};

}  // namespace easydel::collective

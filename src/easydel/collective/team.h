// The ranks of a run on their mesh, and the groups in which they exchange tensors. With one rank there is no process
// group, no store and no socket: every group is this rank alone and every operation returns at once.
// Calls are collective: the members of a group make the same ones in the same order. One thread at a time.
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

// The ranks that differ only along some axes of the mesh. Copies refer to the same group.
// Errors: UserError where the other ranks cannot be reached any more; Bug for a tensor that cannot be sent, and with
// EASYDEL_DEBUG_COLLECTIVES=1 where the ranks do not make the same call (operation, number type, shape).
class Group {
 public:
  Group() = default;  // this rank alone

  int64_t rank() const;  // index in the group
  int64_t size() const;
  bool alone() const { return impl_ == nullptr; }

  // In place. bf16 and fp16 are summed in fp32 and rounded once.
  void all_reduce(const Tensor& x, Reduce reduce = Reduce::sum) const;
  // The parts of all ranks one after the other along `dimension`; they must be equal in shape.
  Tensor all_gather(const Tensor& x, int64_t dimension) const;
  // The sum over ranks of x, of which this rank gets its part of `dimension` (which the size must divide).
  Tensor reduce_scatter(const Tensor& x, int64_t dimension) const;
  void broadcast(const Tensor& x, int64_t root) const;  // in place
  void barrier() const;
  // This rank's part of `dimension`; nothing is sent. A view.
  Tensor part(const Tensor& x, int64_t dimension) const;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct TeamOptions {
  std::filesystem::path file_store;  // where ranks of one machine meet by a file instead of the master's port (tests)
  double connect_seconds = 60;       // until all ranks must be there
  double timeout_seconds = 1800;     // for one operation; EASYDEL_COLLECTIVE_TIMEOUT_SECONDS overrides
  // For tests: whether attempt n (from 0) to make a group is to fail on this rank.
  std::function<bool(int attempt)> fault = nullptr;
};

class Team {
 public:
  // The only rank.
  static std::shared_ptr<const Team> alone();
  // Meets the other ranks of `world`; the mesh must be of that size. UserError where they do not come. From here on the
  // process ignores SIGPIPE.
  static std::shared_ptr<const Team> join(const mesh::World& world, mesh::Mesh mesh, const TeamOptions& options = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const mesh::Mesh& mesh() const { return mesh_; }
  int64_t rank() const { return rank_; }
  int64_t size() const { return mesh_.ranks(); }
  bool first() const { return rank_ == 0; }

  // The group of this rank along the (fused) axes; made at the first call, which is collective.
  Group group(const mesh::Axes& axes) const;
  Group all() const { return group(mesh_.names()); }

  // Which rows of a batch are this rank's: part `batch_part()` of `batch_parts()`.
  int64_t batch_part() const { return mesh_.index(mesh::batch_axes(), rank_); }
  int64_t batch_parts() const { return mesh_.size(mesh::batch_axes()); }

  // Cuts a whole tensor down to this rank's part (a view), and puts the parts together again (collective; a new tensor
  // on every rank) for a resolved spec.
  Tensor cut(const Tensor& whole, const mesh::PartitionSpec& layout) const;
  Tensor whole(const Tensor& part, const mesh::PartitionSpec& layout) const;

 private:
  struct Impl;
  Team(mesh::Mesh mesh, int64_t rank);
  mesh::Mesh mesh_;
  int64_t rank_ = 0;
  std::unique_ptr<Impl> impl_;  // null: alone
};

}  // namespace easydel::collective

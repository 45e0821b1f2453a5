// c10d's Gloo without its headers: a store where ranks meet, and groups of ranks. Private to this layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "easydel/collective/team.h"

namespace easydel::collective {

using Milliseconds = std::chrono::milliseconds;

class Store;

// One group of ranks. `x` and `result` are contiguous CPU tensors of a dtype that Gloo supports.
class GlooGroup {
 public:
  virtual ~GlooGroup() = default;
  virtual void all_reduce(Tensor x, Reduce reduce) = 0;
  virtual void all_gather(Tensor result, Tensor x) = 0;      // along dimension 0
  virtual void reduce_scatter(Tensor result, Tensor x) = 0;  // along dimension 0; sum
  virtual void broadcast(Tensor x, int64_t root) = 0;
  virtual void barrier() = 0;
};

std::shared_ptr<Store> meet(const mesh::World& world, const TeamOptions& options);

// The same ranks once more: groups that are made with it are others than those of `store`, whatever their names. Every
// rank makes the same ones in the same order. `timeout`: of their operations.
std::shared_ptr<Store> store_for_mesh(Store& store, Milliseconds timeout);

// Joins group `name` as member `rank` of `size`. If it fails on one member (Gloo sometimes loses a connection while it
// starts), all members make it again under a new prefix, a few times.
std::shared_ptr<GlooGroup> make_group(Store& store, const std::string& name, int64_t rank, int64_t size);

}  // namespace easydel::collective

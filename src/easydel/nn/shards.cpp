#include "easydel/nn/shards.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <map>

#include "easydel/base/error.h"
#include "easydel/tensor/squares.h"

namespace easydel::nn {
namespace {

using collective::Group;
using collective::Team;

constexpr int64_t bucket_elements = 8 << 20;

std::shared_ptr<const Team> team_of(const ParameterTable& table) {
  return table.entries().empty() ? Team::alone() : table.entries().front().team;
}

// Codes have neither a shard nor a gradient.
bool has_gradient(const Entry& entry) { return entry.shard.defined() && entry.shard.grad().defined(); }

// Every rank must make the same calls, so a gradient that one rank has is created on all.
void agree_on_gradients(ParameterTable& table, const Team& team) {
  Tensor has = at::zeros({int64_t(table.entries().size())}, at::kByte);
  uint8_t* flags = has.mutable_data_ptr<uint8_t>();
  for (size_t i = 0; i < table.entries().size(); ++i) flags[i] = has_gradient(table.entries()[i]);
  team.all().all_reduce(has, collective::Reduce::max);
  for (size_t i = 0; i < table.entries().size(); ++i) {
    const Tensor& shard = table.entries()[i].shard;
    if (flags[i] && !shard.grad().defined()) shard.mutable_grad() = at::zeros_like(shard);
  }
}

// Small tensors are sent together: the latency of one operation is worth many kilobytes.
void all_reduce_bucketed(const Group& group, const std::vector<Tensor>& tensors) {
  for (size_t begin = 0; begin < tensors.size();) {
    size_t end = begin;
    int64_t elements = 0;
    do {
      elements += tensors[end++].numel();
    } while (end < tensors.size() && elements + tensors[end].numel() <= bucket_elements);
    if (end == begin + 1) {
      group.all_reduce(tensors[begin]);
    } else {
      std::vector<Tensor> flat;
      for (size_t i = begin; i < end; ++i) flat.push_back(tensors[i].reshape({-1}));
      Tensor bucket = at::cat(flat);
      group.all_reduce(bucket);
      int64_t at = 0;
      for (size_t i = begin; i < end; ++i) {
        tensors[i].copy_(bucket.narrow(0, at, tensors[i].numel()).view(tensors[i].sizes()));
        at += tensors[i].numel();
      }
    }
    begin = end;
  }
}

}  // namespace

Tensor whole_of(const Entry& entry, const Tensor& part) {
  at::NoGradGuard no_gradient;
  return entry.team->whole(part.detach(), entry.layout);
}

void reduce_gradients(ParameterTable& table) {
  auto team = team_of(table);
  if (team->size() == 1) return;
  at::NoGradGuard no_gradient;
  agree_on_gradients(table, *team);
  // By group and dtype; a map has the same order on every rank.
  std::map<std::pair<mesh::Axes, at::ScalarType>, std::vector<Tensor>> by_group;
  for (const Entry& entry : table.entries()) {
    if (!has_gradient(entry)) continue;
    mesh::Axes cut = mesh::axes_of(entry.layout), axes;
    for (const auto& axis : team->mesh().parallel(mesh::batch_axes())) {
      if (std::find(cut.begin(), cut.end(), axis) == cut.end()) axes.push_back(axis);
    }
    if (!axes.empty()) by_group[{axes, entry.shard.grad().scalar_type()}].push_back(entry.shard.grad());
  }
  for (const auto& [key, tensors] : by_group) all_reduce_bucketed(team->group(key.first), tensors);
}

double squared_gradient_norm(const ParameterTable& table) {
  auto team = team_of(table);
  at::NoGradGuard no_gradient;
  double squares = 0;
  for (const Entry& entry : table.entries()) {
    if (!entry.shard.defined()) continue;  // codes
    const Tensor& gradient = entry.shard.grad();
    if (!gradient.defined()) continue;
    // A shard that several ranks hold is counted by the first of them.
    mesh::Axes copies = team->mesh().others(mesh::axes_of(entry.layout));
    if (team->mesh().index(copies, team->rank()) != 0) continue;
    squares += tensor::sum_of_squares(gradient);
  }
  if (team->size() == 1) return squares;
  Tensor sum = at::zeros({}, at::kDouble).fill_(squares);
  team->all().all_reduce(sum);
  return sum.item<double>();
}

}  // namespace easydel::nn

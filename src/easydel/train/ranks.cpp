#include "easydel/train/ranks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "easydel/collective/autograd.h"
#include "easydel/nn/shards.h"
#include "easydel/train/joint_error.h"

namespace easydel::train {
namespace {

void reduce(const collective::Group& group, std::span<double> values, collective::Reduce how) {
  if (group.alone() || values.empty()) return;
  group.all_reduce(at::from_blob(values.data(), {int64_t(values.size())}, at::kDouble), how);
}

}  // namespace

Ranks::Ranks(std::shared_ptr<const collective::Team> team) : team_(std::move(team)) {}

std::pair<int64_t, int64_t> Ranks::rows(int64_t count) const {
  const int64_t parts = team_->batch_parts(), part = team_->batch_part();
  return {count * part / parts, count * (part + 1) / parts};
}

void Ranks::sum(std::span<double> values) const {
  reduce(team_->group(mesh::batch_axes()), values, collective::Reduce::sum);
}

void Ranks::sum_all(std::span<double> values) const { reduce(team_->all(), values, collective::Reduce::sum); }

std::vector<std::vector<double>> Ranks::of_parts(std::span<const double> values) const {
  const collective::Group group = team_->group(mesh::batch_axes());
  const std::vector<double> own(values.begin(), values.end());
  if (group.alone()) return {own};
  const Tensor all = group.all_gather(at::tensor(at::ArrayRef<double>(own), at::kDouble), 0);
  std::vector<std::vector<double>> out;
  for (const auto* first = all.const_data_ptr<double>(); int64_t(out.size()) < group.size(); first += own.size())
    out.emplace_back(first, first + own.size());
  return out;
}

std::vector<std::string> Ranks::of_parts(const std::string& text) const {
  const double size = double(text.size());
  std::vector<std::vector<double>> sizes = of_parts({&size, 1});
  const auto longest = size_t(std::ranges::max(sizes)[0]);
  std::vector<double> bytes(text.begin(), text.end());
  bytes.resize(longest);
  std::vector<std::string> out;
  for (const std::vector<double>& one : of_parts(bytes))
    out.emplace_back(one.begin(), one.begin() + std::ptrdiff_t(sizes[out.size()][0]));
  return out;
}

void Ranks::together(const std::function<void()>& work) const { train::together(team_->all(), work); }

Tensor Ranks::sum_of_parts(const Tensor& x) const {
  const collective::Group group = team_->group(mesh::batch_axes());
  // Each part's loss depends on the sum, so the gradients of all parts are added.
  return collective::enter(group, collective::leave(group, x));
}

Tensor Ranks::rows_of_parts(const Tensor& rows, bool counts) const {
  const collective::Group group = team_->group(mesh::batch_axes());
  if (group.alone()) return rows;
  const int64_t own = counts ? rows.size(0) : 0;
  const Tensor sizes = group.all_gather(at::tensor({own}, at::kLong), 0);
  const auto* const size = sizes.const_data_ptr<int64_t>();
  const int64_t most = *std::max_element(size, size + group.size());
  std::vector<int64_t> shape = rows.sizes().vec(), taken;
  shape[0] = most - own;
  const Tensor padded = at::cat({rows.slice(0, 0, own), at::zeros(shape, rows.options())});
  for (int64_t part = 0; part < group.size(); ++part)
    for (int64_t row = 0; row < size[part]; ++row) taken.push_back(part * most + row);
  const Tensor all = collective::gather(group, padded, 0, collective::GatherGradient::sum);
  return all.index_select(0, at::tensor(at::IntArrayRef(taken), at::kLong).to(rows.device()));
}

void Ranks::max(std::span<double> values) const { reduce(team_->all(), values, collective::Reduce::max); }

void Ranks::reduce_gradients(nn::ParameterTable& parameters) const { nn::reduce_gradients(parameters); }

double Ranks::gradient_norm(const nn::ParameterTable& parameters) const {
  return std::sqrt(nn::squared_gradient_norm(parameters));
}

bool Ranks::any(bool here) const {
  double flag = here ? 1 : 0;
  max({&flag, 1});
  return flag != 0;
}

void Ranks::barrier() const { team_->all().barrier(); }

}  // namespace easydel::train

// What the ranks of a run do together in a step: the distribution of rows, sums over ranks, gradients, the global norm.
// On one rank all of it is the identity. Collective: every rank makes the same calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "easydel/collective/team.h"
#include "easydel/nn/parameter.h"

namespace easydel::train {

class Ranks {
 public:
  explicit Ranks(std::shared_ptr<const collective::Team> team = collective::Team::alone());
  bool first() const { return team_->first(); }
  int64_t count() const { return team_->size(); }
  int64_t parts() const { return team_->batch_parts(); }  // into which a micro-batch is cut
  int64_t part() const { return team_->batch_part(); }    // which one this rank has
  std::string mesh() const { return team_->mesh().describe(); }

  std::pair<int64_t, int64_t> rows(int64_t count) const;  // this rank's [begin, end) of a micro-batch's examples
  void sum(std::span<double> values) const;               // over the parts of the batch, in place
  void sum_all(std::span<double> values) const;           // over all ranks, in place
  void max(std::span<double> values) const;               // over all ranks, in place
  // As many numbers of each part of the batch, the same on all ranks; and a text of each.
  std::vector<std::vector<double>> of_parts(std::span<const double> values) const;
  std::vector<std::string> of_parts(const std::string& text) const;
  void together(const std::function<void()>& work) const;  // joint_error.h, for all ranks
  // Over the parts of the batch, with gradients: the sum of their tensors; the rows of all of them, as many as each
  // has, where `counts` says for this one whether its rows are taken.
  Tensor sum_of_parts(const Tensor& x) const;
  Tensor rows_of_parts(const Tensor& rows, bool counts) const;
  void reduce_gradients(nn::ParameterTable& parameters) const;
  // Of the whole gradient: each element counted once, in a fixed order.
  double gradient_norm(const nn::ParameterTable& parameters) const;
  bool any(bool here) const;  // true on all ranks when it is on one
  void barrier() const;

 private:
  std::shared_ptr<const collective::Team> team_;
};

}  // namespace easydel::train

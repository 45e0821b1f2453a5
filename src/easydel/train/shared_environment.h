// An environment that the first rank alone asks: every rank gets its answers, and its errors.
#pragma once

#include "easydel/collective/team.h"
#include "easydel/train/environment.h"

namespace easydel::train {

// Calls are collective.
class SharedEnvironment final : public Environment {
 public:
  SharedEnvironment(std::unique_ptr<Environment> own, collective::Group ranks)
      : own_(std::move(own)), ranks_(std::move(ranks)) {}
  std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) override;
  std::vector<EnvironmentAnswer> step(std::span<const Turn> turns) override;

 private:
  template <class Ask>
  std::vector<EnvironmentAnswer> shared(const Ask& ask);

  std::unique_ptr<Environment> own_;
  collective::Group ranks_;
};

// The first rank's text, on all ranks. Collective.
std::string text_of_first_rank(std::string text, const collective::Group& ranks);

}  // namespace easydel::train

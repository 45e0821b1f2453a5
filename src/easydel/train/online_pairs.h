// What the methods share that learn from a completion and its opponent while they train: online_dpo, xpo, nash_md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/train/sampling_method.h"

namespace easydel::train {

class OnlinePairs : public SamplingMethod {
 public:
  struct Keys {
    RolloutKeys rollouts;
    ReferenceKeys reference;
    std::optional<double> missing_eos_penalty;
    bool disable_dropout = true;
    bool learns_opponent = true;  // examples have the opponent's completion as their second sequence
  };
  // UserError for keys that do not fit together.
  OnlinePairs(const Setting& setting, const Keys& keys);

  // A pair with the rewards of both, as an example. `ended`: whether each has its end token.
  struct Pair {
    std::vector<int32_t> prompt, completion, opponent;
    float rewards[2] = {};
    bool ended[2] = {};
  };
  static data::Example example_of(const Pair& pair, bool learns_opponent);

 protected:
  // Who gives the second completions, with the weights as they are in this epoch; nothing: the model itself.
  virtual std::optional<Sampler> opponent(const Sampler& /*policy*/, int64_t /*epoch*/) const { return {}; }

  // Of a micro-batch: [pairs], on the device of the scores.
  struct Judged {
    Tensor first, second;  // rewards
    Tensor first_ended, second_ended;
  };
  static Judged judged(const Batch& batch, at::Device device);
  // By the trained model and the reference, of the labelled tokens of all sequences, at a temperature of 1.
  struct Scored {
    SequenceScores policy, reference;
  };
  Scored scored(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const;

  // The values of a key, one for each epoch. UserError if there are none.
  static std::vector<double> for_epochs(const char* key, const std::vector<double>& values);
  // Of an epoch: the last one stays.
  static double value_at(const std::vector<double>& values, int64_t epoch) {
    return values[size_t(std::min(epoch, int64_t(values.size()) - 1))];
  }

 private:
  Window sampled(const Generation& generation) override;
  void complete(Window& window, const RolloutPlan& plan) override;

  Keys keys_;
  int64_t epoch_ = 0;  // of the last generation that is learned
};

// The mean over the pairs.
void add_mean(Loss& out, const char* name, const Tensor& values);

}  // namespace easydel::train

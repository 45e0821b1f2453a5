// A model for tests that do something around a pass of another one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "easydel/models/model.h"

namespace easydel::esurge {

// Answers like the model inside; a test overrides forward().
class WrappedModel : public models::Model {
 public:
  explicit WrappedModel(std::shared_ptr<const models::Model> inner) : inner_(std::move(inner)) {
    config_ = inner_->config();
  }
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    return inner_->forward(inputs, pass);
  }
  const nn::Head& head() const override { return inner_->head(); }
  int64_t layers() const override { return inner_->layers(); }
  int64_t vocabulary() const override { return inner_->vocabulary(); }
  int64_t max_positions() const override { return inner_->max_positions(); }
  std::vector<nn::CacheLayer> cache_layers() const override { return inner_->cache_layers(); }
  std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const override {
    return inner_->make_cache(slots, length);
  }
  double training_flops_per_token(int64_t length) const override { return inner_->training_flops_per_token(length); }

 private:
  std::shared_ptr<const models::Model> inner_;
};

}  // namespace easydel::esurge

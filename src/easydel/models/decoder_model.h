// The model that a DecoderSpec describes, for families that override one of its decisions. Others call build_decoder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/decoder.h"

namespace easydel::models {

class Decoder : public Model {
 public:
  Decoder(DecoderSpec spec, nn::Building& building);
  ~Decoder() override;

  Outputs forward(const Inputs& inputs, nn::Pass& pass) const override;
  const nn::Head& head() const override;
  const nn::ClassHead* class_head() const override { return class_head_ ? &*class_head_ : nullptr; }
  std::optional<RouterLoss> router_loss() const override { return spec_.router_loss; }
  bool causal() const override { return spec_.causal; }
  int64_t layers() const override { return int64_t(blocks_.size()); }
  int64_t vocabulary() const override { return spec_.vocabulary; }
  int64_t max_positions() const override { return spec_.max_positions; }
  int64_t turning_length() const override;
  std::vector<nn::CacheLayer> cache_layers() const override;
  std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const override;
  double training_flops_per_token(int64_t length) const override;

 protected:
  const DecoderSpec& spec() const { return spec_; }
  // Whether this pass leaves out all of the block at `path`.
  virtual bool leaves_out(const std::string& /*path*/, const nn::Pass& /*pass*/) const { return false; }

 private:
  void see_both_sides();
  void build_head(const nn::Scope& root, const nn::HeadPlan& plan);
  int64_t head_width() const;

  DecoderSpec spec_;
  at::ScalarType compute_;
  std::unique_ptr<DecoderEmbedding> embedding_;
  std::unique_ptr<StackBoundary> boundary_;
  std::vector<nn::PlacedLayer> blocks_;
  std::optional<nn::Norm> norm_;
  std::unique_ptr<nn::Head> head_;  // null: there is no language head
  std::optional<nn::ClassHead> class_head_;
};

}  // namespace easydel::models

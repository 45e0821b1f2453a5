// Which parameters are trainable.
#include "easydel/nn/trainable.h"

#include <gtest/gtest.h>

namespace easydel::nn {
namespace {

TEST(Trainable, IsEverythingNothingOrWhatAPatternFinds) {
  const char* const path = "model.layers.0.self_attn.q_proj.weight";
  EXPECT_TRUE(Trainable().contains(path));
  EXPECT_TRUE(Trainable::everything().contains(path));
  EXPECT_FALSE(Trainable::nothing().contains(path));
  EXPECT_TRUE(Trainable::matching("layers\\.0\\.").contains(path));
  EXPECT_FALSE(Trainable::matching("layers\\.1\\.").contains(path));
  EXPECT_FALSE(Trainable::except("q_proj|k_proj").contains(path));
  EXPECT_TRUE(Trainable::except("mlp").contains(path));
  EXPECT_FALSE(Trainable().without_layers({0, 2}).contains(path, 0));
  EXPECT_TRUE(Trainable().without_layers({0, 2}).contains(path, 1));
  EXPECT_TRUE(Trainable().without_layers({0, 2}).contains("lm_head.weight"));
  EXPECT_FALSE(Trainable::except("q_proj").without_layers({1}).contains(path, 0));
}

}  // namespace
}  // namespace easydel::nn

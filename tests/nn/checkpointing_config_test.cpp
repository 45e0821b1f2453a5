#include "easydel/nn/checkpointing_config.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace easydel::nn {
namespace {

using Targets = std::vector<std::string>;

TEST(CheckpointPolicy, KeepsWhatItsWordSays) {
  using enum GradientCheckpointing;
  const auto kept = [](GradientCheckpointing policy, const std::optional<Targets>& targets = std::nullopt) {
    const CheckpointPolicy made = checkpoint_policy(policy, targets);
    std::string out;
    for (const char* name : {"attn_query", "attn_dense", "mlp_up", "mixer_in"}) out += made.keeps(name) ? 'x' : '-';
    return made.recomputes() ? out : "all";
  };
  EXPECT_EQ(kept(none), "all");
  EXPECT_EQ(kept(everything_saveable), "all");
  EXPECT_EQ(kept(nothing_saveable), "----");
  EXPECT_EQ(kept(checkpoint_dots), "xxxx");
  EXPECT_EQ(kept(dots_saveable), "xxxx");
  EXPECT_EQ(kept(checkpoint_dots_with_no_batch_dims), "x-xx");
  EXPECT_EQ(kept(dots_with_no_batch_dims_saveable), "x-xx");
  EXPECT_EQ(kept(save_only_these_names, Targets{"mlp_up"}), "--x-");
  EXPECT_EQ(kept(save_any_names_but_these, Targets{"mlp_up"}), "xx-x");
  EXPECT_EQ(kept(save_anything_except_these_names, Targets{"mlp_up"}), "xx-x");
  EXPECT_EQ(kept(save_from_both_policies, Targets{"mlp_up"}), "x-xx");
  EXPECT_EQ(kept(save_from_both_policies, Targets{"attn_dense"}), "xxxx");
  EXPECT_EQ(kept(mlp_notsaveable), "xx-x");
  EXPECT_EQ(kept(attn_notsaveable), "--xx");
  EXPECT_EQ(kept(mlp_attn_notsaveable), "---x");
}

TEST(CheckpointPolicy, KnowsNoNameTwice) {
  std::vector<std::string_view> names(checkpoint_names().begin(), checkpoint_names().end());
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_FALSE(names.front().empty());
}

}  // namespace
}  // namespace easydel::nn

#include "easydel/nn/layer_pattern.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::nn {
namespace {

Entry entry_of(const std::string& path, std::vector<int64_t> shape, Role role = Role::weight, bool head = false) {
  Entry out;
  out.path = path;
  out.shape = std::move(shape);
  out.role = role;
  out.head = head;
  return out;
}

bool takes(const char* pattern, const std::string& layer, bool head = false, bool shared = false) {
  return LayerPattern(pattern, "pattern").takes(entry_of(layer + ".weight", {4, 4}, Role::weight, head), layer, shared);
}

bool names(const char* pattern, const Entry& entry) { return LayerPattern(pattern, "pattern").names(entry); }

TEST(LayerPattern, TakesTheLinearLayersThatItFinds) {
  const std::string query = "model.layers.0.self_attn.q_proj";
  EXPECT_TRUE(takes("", query));
  EXPECT_TRUE(takes("attn", query));
  EXPECT_FALSE(takes("mlp", query));
  EXPECT_TRUE(takes("^(?!.*mlp).*$", query));
}

TEST(LayerPattern, TakesTheOutputLayerWhereItIsFoundAlone) {
  for (const bool shared : {false, true}) {
    EXPECT_FALSE(takes("", "lm_head", !shared, shared));
    EXPECT_TRUE(takes("lm_head", "lm_head", !shared, shared));
  }
}

// A pattern that matches every path does not mean them.
TEST(LayerPattern, NamesEmbeddingsAndExpertsByAWord) {
  const Entry table = entry_of("model.embed_tokens.weight", {8, 4}, Role::embedding);
  EXPECT_TRUE(names("embed_tokens|proj", table));
  const Entry stack = entry_of("model.layers.0.mlp.experts.up_proj.weight", {2, 4, 4});
  EXPECT_TRUE(names("experts", stack));
  for (const char* const other : {"", ".*", "proj", "^(?!.*(?:embed|experts)).*$", "model"}) {
    EXPECT_FALSE(names(other, table)) << other;
    EXPECT_FALSE(names(other, stack)) << other;
  }
}

TEST(LayerPattern, IsARegularExpression) {
  EXPECT_EQ(test::refusal([] { LayerPattern("q_proj(", "where"); }),
            "where: 'q_proj(' is not a regular expression\n    for example: \"self_attn|mlp\"");
}

}  // namespace
}  // namespace easydel::nn

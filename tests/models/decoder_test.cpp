// Options of a configuration that change the stack itself: layers that training drops, bidirectional attention, unused
// parameters.
#include "easydel/models/decoder.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::models {
namespace {

std::string sizes(const std::string& more) {
  return R"({"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "vocab_size": 96, "max_position_embeddings": 64, "initializer_range": 0.2, "init_std": 0.2, )" +
         more + "}";
}

std::shared_ptr<Model> model_of(const std::string& config) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json", config);
  return load_model(folder.path(), {});
}

Tensor logits_of(const Model& model, const Tensor& tokens, const std::function<void(nn::Pass&)>& set = {}) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, tokens.size(0)});
  if (set) set(pass);
  return model.head().logits(model.forward({tokens}, pass).hidden, pass);
}

Tensor some_tokens() { return at::arange(20, at::kLong) * 7 % 90 + 3; }

TEST(Decoder, LeavesOutLayersWhileItTrains) {
  const auto model = model_of(sizes(R"("model_type": "opt", "dropout": 0.0, "layerdrop": 0.5)"));
  const auto whole = model_of(sizes(R"("model_type": "opt", "dropout": 0.0)"));
  const Tensor tokens = some_tokens(), all = logits_of(*whole, tokens);
  EXPECT_TRUE(logits_of(*model, tokens).equal(all));
  int64_t complete = 0;
  for (uint64_t step = 0; step < 64; ++step) {
    const auto training = [step](nn::Pass& pass) {
      pass.random().training = true;
      pass.random().step = step;
    };
    const Tensor made = logits_of(*model, tokens, training);
    EXPECT_TRUE(made.equal(logits_of(*model, tokens, training))) << step;
    complete += made.equal(all);
  }
  // All four layers stay in one step of sixteen.
  EXPECT_GE(complete, 1);
  EXPECT_LE(complete, 12);
}

TEST(Decoder, SeesBothSidesWhereTheConfigurationSaysSo) {
  const std::string config =
      sizes(R"("model_type": "mistral", "sliding_window": 3, "num_hidden_layers": 1, "num_key_value_heads": 2)");
  const auto one = test::replaced(config, "\"num_hidden_layers\": 4, ", "");
  const auto before = model_of(one);
  const auto both = model_of(test::replaced(one, "{", "{\"is_causal\": false, "));
  const Tensor tokens = some_tokens(), changed = tokens.clone();
  changed[10] = 91;
  const auto differ = [&](const Model& model) {
    return (logits_of(model, tokens) - logits_of(model, changed)).abs().amax(-1).gt(1e-6);
  };
  const Tensor after = differ(*before), around = differ(*both);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(after[i].item<bool>(), i >= 10 && i <= 12) << i;
    EXPECT_EQ(around[i].item<bool>(), i >= 7 && i <= 13) << i;
  }
}

TEST(Decoder, RefusesBothSidesWhereBlocksAreTheFamilysOwn) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json",
                   sizes(R"("model_type": "jamba", "num_key_value_heads": 2, "is_causal": false)"));
  EXPECT_EQ(test::refusal([&] { load_model(folder.path(), {}); }),
            "config.json: is_causal: false is not built for this family\n    leave it out");
}

TEST(LongcatFlash, KeepsABiasThatItsRouterDoesNotAdd) {
  const std::string config = sizes(R"("model_type": "longcat_flash", "num_layers": 2, "ffn_hidden_size": 48,
    "expert_ffn_hidden_size": 16, "n_routed_experts": 4, "zero_expert_num": 2, "moe_topk": 2, "q_lora_rank": 8,
    "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8)");
  const auto with = model_of(test::replaced(config, "{", "{\"router_bias\": true, "));
  const nn::Entry* bias = with->parameters().find("model.layers.0.mlp.router.classifier.bias");
  ASSERT_NE(bias, nullptr);
  bias->shard.fill_(3.0).narrow(0, 0, 2).fill_(-50.0);
  const Tensor tokens = some_tokens();
  EXPECT_TRUE(logits_of(*with, tokens).equal(logits_of(*model_of(config), tokens)));
}

const char* const kGlmMoeDsa =
    R"("model_type": "glm_moe_dsa", "q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 8,
  "qk_rope_head_dim": 4, "v_head_dim": 8, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 3,
  "first_k_dense_replace": 4, )";

// A golden's folder whose config.json has no pad_token_id: the class's default row receives no gradient.
TEST(PaddingToken, IsThatOfTheConfigurationClassWhereNoneIsGiven) {
  for (const char* const family : {"bamba", "falcon_h1", "jamba", "lfm2", "lfm2_moe"}) {
    const test::TemporaryFolder folder;
    Value config = parse_file(test::test_data(std::string("hf_goldens/") + family + "/config.json"));
    std::erase_if(config.entries, [](const auto& entry) { return entry.first == "pad_token_id"; });
    config.key_places.clear();
    test::write_file(folder / "config.json", to_json(config));
    LoadOptions options;
    options.training = true;
    const auto model = load_model(folder.path(), options);
    const Tensor tokens = at::arange(8);
    nn::Pass pass = nn::Pass::over({0, 8});
    const Tensor hidden = model->forward({tokens}, pass).hidden;
    hidden.square().sum().backward();
    const nn::Entry* const table = model->parameters().find("model.embed_tokens.weight");
    ASSERT_NE(table, nullptr) << family;
    const Tensor learned = table->shard.grad().abs().sum(1);
    EXPECT_EQ(learned[0].item<float>(), 0) << family;
    EXPECT_GT(learned[1].item<float>(), 0) << family;
  }
}

TEST(GlmMoeDsa, FindsASharedChoiceAgainWhereLayersAreComputedAgain) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json", sizes(std::string(kGlmMoeDsa) + R"("index_topk_pattern": "FSFS")"));
  LoadOptions options;
  options.training = true;
  const auto gradients = [&](nn::CheckpointPolicy policy) {
    const auto model = load_model(folder.path(), options);
    nn::Pass pass = nn::Pass::over({0, 9, 20});
    pass.activations().checkpointing = std::move(policy);
    const Tensor hidden = model->forward({some_tokens()}, pass).hidden;
    model->head().score(hidden, some_tokens(), pass).logps.mean().backward();
    std::map<std::string, Tensor> out;
    for (const nn::Entry& entry : model->parameters().entries())
      if (entry.shard.grad().defined()) out[entry.path] = entry.shard.grad();
    return out;
  };
  const auto plain = gradients(nn::Checkpointing::none), again = gradients(nn::Checkpointing::nothing_saveable);
  EXPECT_GT(plain.size(), 20u);
  EXPECT_EQ(plain.size(), again.size());
  for (const auto& [name, gradient] : plain) EXPECT_TRUE(gradient.equal(again.at(name))) << name;
}

TEST(GlmMoeDsa, RefusesIndexersThatAreSharedWithNobody) {
  const auto refusal_of = [](const std::string& more) {
    const test::TemporaryFolder folder;
    test::write_file(folder / "config.json", sizes(kGlmMoeDsa + more));
    return test::replaced(test::refusal([&] { load_model(folder.path(), {}); }), folder.path().string(), "M");
  };
  EXPECT_EQ(refusal_of(R"("index_topk_pattern": "SFFS")"),
            "M/config.json: index_topk_pattern: the first layer has no earlier layer to share with\n    begin with a "
            "full layer");
  EXPECT_EQ(refusal_of(R"("indexer_types": ["full", "half", "full", "full"])"),
            "M/config.json: indexer_types: 'half' is not known\n    known: full, shared");
  EXPECT_EQ(refusal_of(R"("indexer_types": ["full", "shared"])"),
            "M/config.json: indexer_types: names 2 layers; num_hidden_layers is 4");
}

}  // namespace
}  // namespace easydel::models

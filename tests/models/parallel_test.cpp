// The same model on one rank and on several: loss, gradients, logits, generation with a cache, saving and loading.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/models/model.h"
#include "easydel/nn/cache.h"
#include "easydel/nn/shards.h"
#include "support/ranks.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;
using collective::Team;
using test::Meeting;
using test::run_ranks;

struct Case {
  const char* name;
  const char* config;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"llama with biases",
       R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
           "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": false, "max_position_embeddings": 64})"},
      {"llama with one kv head and sizes that do not divide",
       R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 97, "hidden_size": 24,
           "intermediate_size": 33, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
           "tie_word_embeddings": false, "max_position_embeddings": 64})"},
      {"qwen3, tied, with norms of heads",
       R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
           "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "head_dim": 8, "tie_word_embeddings": true, "max_position_embeddings": 64})"},
      {"gpt2, fused and transposed",
       R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 96, "n_embd": 32, "n_layer": 2,
           "n_head": 4, "n_positions": 64, "attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0})"},
      {"qwen3_moe, each expert whole on a rank of fsdp",
       R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 96, "hidden_size": 32,
           "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
           "tie_word_embeddings": false, "max_position_embeddings": 64})"}};
  return all;
}

std::shared_ptr<const Team> join(const Meeting& meeting, std::vector<int64_t> sizes) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 60;
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

std::shared_ptr<Model> make(const fs::path& folder, std::shared_ptr<const Team> team, bool training = true,
                            std::vector<mesh::Rule> rules = {}) {
  LoadOptions options;
  options.dtype = DTypeSetting::fp32;
  options.training = training;
  options.seed = 7;
  options.team = std::move(team);
  options.partition_rules = std::move(rules);
  return load_model(folder, options);
}

// Four rows of unequal lengths. The last token of a row has no label.
const std::vector<int64_t> lengths = {7, 3, 9, 5};
constexpr int64_t labels_of_all_rows = 7 + 3 + 9 + 5 - 4;

Tensor row(int64_t index, int64_t vocabulary) {
  return (at::arange(lengths[size_t(index)], at::kLong) * 31 + index * 17 + 5).remainder(vocabulary);
}

// This rank's rows forward and backward; the loss is the mean over the labels of all rows.
double step(Model& model, const Team& team, nn::Checkpointing checkpointing) {
  int64_t rows = int64_t(lengths.size()) / team.batch_parts();
  double loss = 0;
  // Two micro-batches if a rank has that many rows.
  int64_t at_once = std::max<int64_t>(1, rows / 2);
  for (int64_t begin = team.batch_part() * rows, end = begin + rows; begin < end; begin += at_once) {
    std::vector<int64_t> cu = {0};
    std::vector<Tensor> tokens;
    std::vector<int64_t> from, to;
    for (int64_t r = begin; r < begin + at_once; ++r) {
      tokens.push_back(row(r, model.vocabulary()));
      cu.push_back(cu.back() + lengths[size_t(r)]);
    }
    Tensor flat = at::zeros({cu.back()}, at::kLong), keep = at::zeros({cu.back()}, at::kBool);
    for (size_t i = 0; i < tokens.size(); ++i) {
      flat.narrow(0, cu[i], tokens[i].size(0)).copy_(tokens[i]);
      keep.narrow(0, cu[i], tokens[i].size(0) - 1).fill_(true);
    }
    nn::Pass pass = nn::Pass::over(cu);
    pass.random().training = true;
    pass.activations().checkpointing = checkpointing;
    Tensor hidden = model.forward({flat}, pass).hidden;
    Tensor predicting = keep.nonzero().squeeze(1);
    nn::Scores scores =
        model.head().score(hidden.index_select(0, predicting), flat.index_select(0, predicting + 1), pass);
    Tensor part = -scores.logps.sum() / double(labels_of_all_rows);
    part.backward();
    loss += part.item<double>();
  }
  return loss;
}

double relative(const Tensor& a, const Tensor& b) {
  double scale = b.abs().max().item<double>();
  return (a - b).abs().max().item<double>() / (scale > 0 ? scale : 1);
}

void expect_equal_training(const Meeting& meeting, const std::vector<int64_t>& sizes,
                           const std::vector<mesh::Rule>& rules = {}) {
  auto team = join(meeting, sizes);
  test::TemporaryFolder folder;
  for (const Case& c : cases()) {
    for (auto checkpointing : {nn::Checkpointing::none, nn::Checkpointing::nothing_saveable}) {
      SCOPED_TRACE(c.name);
      test::write_file(folder / "config.json", c.config);
      auto one = make(folder.path(), Team::alone());
      double expected = step(*one, one->team(), nn::Checkpointing::none);
      auto many = make(folder.path(), team, true, rules);
      Tensor loss = at::zeros({}, at::kDouble) + step(*many, *team, checkpointing);
      nn::reduce_gradients(many->parameters());
      team->group(mesh::batch_axes()).all_reduce(loss);
      EXPECT_NEAR(loss.item<double>(), expected, 1e-6 * expected);

      double squares = 0;
      for (nn::Entry& entry : many->parameters().entries()) {
        const nn::Entry& whole = *one->parameters().find(entry.path);
        // Initial values do not depend on the mesh.
        EXPECT_TRUE(nn::whole_of(entry, entry.shard).equal(whole.shard)) << entry.path;
        ASSERT_TRUE(entry.shard.grad().defined()) << entry.path;
        EXPECT_LT(relative(nn::whole_of(entry, entry.shard.grad()), whole.shard.grad()), 1e-5) << entry.path;
        squares += whole.shard.grad().to(at::kDouble).square().sum().item<double>();
      }
      EXPECT_NEAR(nn::squared_gradient_norm(many->parameters()), squares, 1e-5 * squares);
    }
  }
}

TEST(ParallelModel, TensorParallelEqualsOneRank) {
  run_ranks(2, [](const Meeting& m) { expect_equal_training(m, {1, 1, 1, 2, 1}); });
}
TEST(ParallelModel, FullyShardedEqualsOneRank) {
  run_ranks(2, [](const Meeting& m) { expect_equal_training(m, {1, 2, 1, 1, 1}); });
}
TEST(ParallelModel, DataParallelEqualsOneRank) {
  run_ranks(2, [](const Meeting& m) { expect_equal_training(m, {2, 1, 1, 1, 1}); });
}
TEST(ParallelModel, TwoAxesTogetherEqualOneRank) {
  run_ranks(4, [](const Meeting& m) { expect_equal_training(m, {1, 2, 1, 2, 1}); });
  run_ranks(4, [](const Meeting& m) { expect_equal_training(m, {2, 2, 1, 1, 1}); });
}

// Layouts that do not fit the computation are gathered and cut again, and give the same numbers.
TEST(ParallelModel, AnyPartitionRulesGiveTheSameNumbers) {
  run_ranks(4, [](const Meeting& m) {
    expect_equal_training(m, {1, 2, 1, 2, 1},
                          {{"q_proj/kernel", {{"tp"}, {"fsdp"}}},
                           {"k_proj/.*|norm", {{"tp", "fsdp"}}},
                           {"o_proj|down_proj", {{}, {"fsdp", "tp"}}},
                           {"embed", {{"tp"}}},
                           {".*", {}}});
  });
}

// Each rank holds its part only.
TEST(ParallelModel, CreatesParametersInTheirShard) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 2, 1});
    test::TemporaryFolder folder;
    test::write_file(folder / "config.json", cases()[0].config);
    auto model = make(folder.path(), team);
    const nn::Entry& q = *model->parameters().find("model.layers.0.self_attn.q_proj.weight");
    EXPECT_EQ(q.shard.sizes(), (at::IntArrayRef{16, 16}));
    EXPECT_EQ(q.shard.storage().nbytes(), 16u * 16 * 4);
    const nn::Entry& down = *model->parameters().find("model.layers.1.mlp.down_proj.weight");
    EXPECT_EQ(down.shard.sizes(), (at::IntArrayRef{16, 32}));
    EXPECT_EQ(model->parameters().find("model.norm.weight")->shard.size(0), 32);
  });
}

// What one mesh writes every other reads.
TEST(ParallelModel, SavesAndLoadsOnAnyMesh) {
  test::TemporaryFolder folder;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const fs::path start = folder / "start", saved = folder / "saved", again = folder / "again";
    for (const fs::path& p : {start, saved, again}) fs::remove_all(p);
    test::write_file(start / "config.json", c.config);
    run_ranks(4, [&](const Meeting& meeting) {
      auto team = join(meeting, {1, 2, 1, 2, 1});
      save_model(*make(start, team), saved);
    });
    run_ranks(2, [&](const Meeting& meeting) {
      auto model = make(saved, join(meeting, {1, 1, 1, 2, 1}), false);
      auto expected = make(start, Team::alone());
      for (const nn::Entry& entry : model->parameters().entries()) {
        EXPECT_TRUE(nn::whole_of(entry, entry.shard).equal(expected->parameters().find(entry.path)->shard.detach()))
            << entry.path;
      }
      save_model(*copy_model(*model), again);
    });
    run_ranks(1, [&](const Meeting&) { save_model(*make(start, Team::alone()), folder / "plain"); });
    EXPECT_EQ(test::read_file(saved / "model.safetensors"), test::read_file(folder / "plain/model.safetensors"));
    EXPECT_EQ(test::read_file(again / "model.safetensors"), test::read_file(folder / "plain/model.safetensors"));
    fs::remove_all(folder / "plain");
  }
}

TEST(ParallelModel, ContinuesFromACacheAsOneRankDoes) {
  run_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 1, 1, 2, 1});
    test::TemporaryFolder folder;
    const at::NoGradGuard no_gradient;
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.name);
      test::write_file(folder / "config.json", c.config);
      auto logits = [&](std::shared_ptr<const Team> with) {
        auto model = make(folder.path(), std::move(with), false);
        auto cache = model->make_cache(1, 16);
        Tensor tokens = row(2, model->vocabulary());
        auto memory = cache->next({0}, {6});
        nn::Pass prompt = nn::Pass::next(*memory, {6});
        model->forward({tokens.narrow(0, 0, 6)}, prompt);
        memory = cache->next({0}, {3});
        nn::Pass rest = nn::Pass::next(*memory, {6});
        return model->head().logits(model->forward({tokens.narrow(0, 6, 3)}, rest).hidden, rest);
      };
      EXPECT_LT(relative(logits(team), logits(Team::alone())), 1e-5);
    }
  });
}

// The codes of a head have a scale of their own, so that they are the same on the rank that has the head.
TEST(ParallelModel, ContinuesFromCodesAsOneRankDoes) {
  run_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 1, 1, 2, 1});
    test::TemporaryFolder folder;
    const at::NoGradGuard no_gradient;
    test::write_file(folder / "config.json", cases()[0].config);
    for (const nn::CacheFormat format : {nn::CacheFormat::int8, nn::CacheFormat::int4_values, nn::CacheFormat::e4m3}) {
      auto logits = [&](std::shared_ptr<const Team> with) {
        LoadOptions options;
        options.dtype = DTypeSetting::fp32, options.cache_format = format, options.team = std::move(with);
        auto model = load_model(folder.path(), options);
        auto cache = model->make_cache(1, 16);
        Tensor tokens = row(2, model->vocabulary());
        auto memory = cache->next({0}, {6});
        nn::Pass prompt = nn::Pass::next(*memory, {6});
        model->forward({tokens.narrow(0, 0, 6)}, prompt);
        memory = cache->next({0}, {3});
        nn::Pass rest = nn::Pass::next(*memory, {6});
        return model->head().logits(model->forward({tokens.narrow(0, 6, 3)}, rest).hidden, rest);
      };
      // A sum over ranks may round a number to the next code.
      EXPECT_LT(relative(logits(team), logits(Team::alone())), 1e-3);
    }
  });
}

TEST(ParallelModel, IsLaidOutAnewAsIfItHadBeenLoadedSo) {
  run_ranks(2, [](const Meeting& meeting) {
    test::TemporaryFolder folder;
    const auto fsdp = join(meeting, {1, 2, 1, 1, 1});
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.name);
      test::write_file(folder / "config.json", c.config);
      const auto trained = make(folder.path(), fsdp);
      for (const std::vector<int64_t>& sizes :
           {std::vector<int64_t>{1, 1, 1, 2, 1}, {2, 1, 1, 1, 1}, {1, 2, 1, 1, 1}}) {
        const auto team = fsdp->on_mesh(mesh::Mesh(mesh::default_axes(), sizes), 20);
        const auto anew = lay_out_anew(*trained, team, {}), loaded = make(folder.path(), team, false);
        ASSERT_EQ(anew->parameters().entries().size(), loaded->parameters().entries().size());
        for (const nn::Entry& entry : loaded->parameters().entries()) {
          const nn::Entry& own = *anew->parameters().find(entry.path);
          EXPECT_TRUE(own.shard.equal(entry.shard)) << entry.path;
          EXPECT_EQ(own.layout, entry.layout) << entry.path;
          const bool same = sizes[1] == 2;
          EXPECT_EQ(own.shard.data_ptr() == trained->parameters().find(entry.path)->shard.data_ptr(),
                    same || entry.layout == trained->parameters().find(entry.path)->layout)
              << entry.path;
        }
        EXPECT_EQ(&anew->team(), team.get());
      }
    }
  });
}

TEST(ParallelModel, RefusesAxesThatAreNotBuilt) {
  run_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 1, 1, 1, 2});
    test::TemporaryFolder folder;
    test::write_file(folder / "config.json", cases()[0].config);
    EXPECT_EQ(
        test::refusal([&] { make(folder.path(), team); }),
        "sharding.axis_dims: axis sp has 2 ranks, which is not built yet\n    set sp to 1; dp, fsdp and tp are built");
  });
}

}  // namespace
}  // namespace easydel::models

#include "easydel/models/adapters.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "easydel/models/adapter.h"
#include "models/adapter_settings.h"
#include "support/data.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;
using test::golden;

std::shared_ptr<Model> load(const fs::path& folder, DTypeSetting dtype,
                            const std::vector<AdapterOptions>& adapters = {}) {
  LoadOptions options;
  options.dtype = dtype;
  options.adapters = adapters;
  return load_model(folder, options);
}

// Saves an adapter that changes the model from the beginning.
void write_adapter(const fs::path& model, const std::string& yaml, uint64_t seed, const fs::path& folder) {
  AdapterOptions options{.config = test::lora(yaml)};
  options.seed = seed;
  const auto made = load(model, DTypeSetting::automatic, {options});
  save_adapter(*made, *made->adapters().front(), folder, model.string());
}

// The requested logits of sequences of `lengths` tokens, each with its adapter, in one pass each: whole, and as prompt
// and one more token through the cache.
std::vector<Tensor> logits(const Model& model, const std::vector<int64_t>& lengths,
                           const std::vector<Adapters::Loaded>& adapters, uint64_t first = 0) {
  const at::NoGradGuard no_gradient;
  std::vector<int64_t> begins = {0}, slots, prompts, ones;
  std::vector<Tensor> tokens, heads, tails;
  for (size_t s = 0; s < lengths.size(); ++s) {
    begins.push_back(begins.back() + lengths[s]);
    tokens.push_back((at::arange(lengths[s], at::kLong) * 7 + int64_t(s + first)) % model.vocabulary());
    heads.push_back(tokens.back().slice(0, 0, -1));
    tails.push_back(tokens.back().slice(0, -1));
    slots.push_back(int64_t(s));
    prompts.push_back(lengths[s] - 1);
    ones.push_back(1);
  }
  nn::Pass whole = nn::Pass::over(begins);
  whole.stream().sequence_adapters = adapters;
  std::vector<Tensor> out(lengths.size());
  const Tensor all = model.head().logits(model.forward({at::cat(tokens)}, whole).hidden, whole);
  for (size_t s = 0; s < lengths.size(); ++s) out[s] = all.slice(0, begins[s], begins[s + 1]);
  const auto cache = model.make_cache(int64_t(lengths.size()), 16);
  for (const auto& [part, counts] : {std::pair{heads, prompts}, {tails, ones}}) {
    const auto memory = cache->next(slots, counts);
    nn::Pass pass = nn::Pass::next(*memory, prompts);
    pass.stream().requested = ones;
    pass.stream().sequence_adapters = adapters;
    const Tensor rows = model.head().logits(model.forward({at::cat(part)}, pass).hidden, pass);
    for (size_t s = 0; s < lengths.size(); ++s) out[s] = at::cat({out[s], rows.slice(0, int64_t(s), int64_t(s) + 1)});
  }
  return out;
}

struct Case {
  const char *model, *one, *other;
  DTypeSetting dtype = DTypeSetting::automatic;
};
void PrintTo(const Case& of, std::ostream* to) { *to << of.model << " " << of.one << " " << of.other; }

class SequencesWithAdapters : public testing::TestWithParam<Case> {};

// Each row of a mixed pass has the bits of the model that was loaded with that adapter alone.
TEST_P(SequencesWithAdapters, HaveTheBitsThatTheyHaveAlone) {
  const Case& of = GetParam();
  const test::TemporaryFolder work;
  write_adapter(golden(of.model), of.one, 1, work / "one");
  write_adapter(golden(of.model), of.other, 2, work / "other");
  const auto base = load(golden(of.model), of.dtype);
  Adapters adapters(base);
  const auto one = adapters.add("one", work / "one"), other = adapters.add("other", work / "other");
  const std::vector<int64_t> lengths = {5, 4, 7, 3, 6};
  const std::vector<Adapters::Loaded> chosen = {one, nullptr, other, other, one};
  const std::vector<Tensor> mixed = logits(*base, lengths, chosen);
  const auto plain = load(golden(of.model), of.dtype),
             with_one = load(golden(of.model), of.dtype, {adapter_in(work / "one")}),
             with_other = load(golden(of.model), of.dtype, {adapter_in(work / "other")});
  for (size_t s = 0; s < lengths.size(); ++s) {
    const Model& alone = chosen[s] == one ? *with_one : chosen[s] == other ? *with_other : *plain;
    const Tensor expected = logits(alone, {lengths[s]}, {}, s).front();
    EXPECT_TRUE(mixed[s].view(at::kInt).equal(expected.view(at::kInt))) << s;
    EXPECT_EQ(chosen[s] == nullptr, mixed[s].equal(logits(*plain, {lengths[s]}, {}, s).front())) << s;
    EXPECT_TRUE(mixed[s].view(at::kInt).equal(logits(*base, {lengths[s]}, {chosen[s]}, s).front().view(at::kInt))) << s;
  }
}

constexpr const char *lora = "{r: 3, alpha: 2, init: random}", *dora = "{r: 2, init: random, use_dora: true}",
                     *ends = "{r: 2, init: random, target_modules: [q_proj, embed_tokens, lm_head]}";

INSTANTIATE_TEST_SUITE_P(
    Models, SequencesWithAdapters,
    testing::Values(Case{"llama", lora, dora}, Case{"llama", lora, ends, DTypeSetting::bf16},
                    Case{"llama", "{r: 16, init: random}", "{r: 12, init: random, target_modules: [q_proj, up_proj]}",
                         DTypeSetting::bf16},
                    Case{"llama", "{r: 2, init: random, target_modules: [q_proj], modules_to_save: [embed_tokens]}",
                         ends},
                    Case{"gemma2", lora, ends}, Case{"phi3", lora, "{r: 5, init: random, target_modules: [o_proj]}"},
                    Case{"gpt2", "{r: 2, init: random, target_modules: [c_attn, c_proj, c_fc], lora_bias: true}",
                         "{r: 2, init: random, target_modules: [wte, lm_head]}"},
                    Case{"deepseek_v3", lora, "{r: 2, init: random, target_modules: [kv_b_proj]}"},
                    Case{"mixtral", lora, dora}, Case{"falcon_h1", lora, lora, DTypeSetting::bf16},
                    Case{"qwen3_next", lora, lora}));

// Layers that read one input are computed together where no gradient is kept, also with adapters.
TEST(Adapters, AddTheSameBitsToProductsThatAreMadeTogether) {
  for (const DTypeSetting dtype : {DTypeSetting::automatic, DTypeSetting::bf16}) {
    const test::TemporaryFolder work;
    write_adapter(golden("llama"), "{r: 16, init: random}", 1, work / "one");
    write_adapter(golden("llama"), "{r: 3, init: random, target_modules: [k_proj, gate_proj, down_proj]}", 2,
                  work / "other");
    const auto base = load(golden("llama"), dtype), with_one = load(golden("llama"), dtype, {adapter_in(work / "one")});
    Adapters adapters(base);
    const auto one = adapters.add("one", work / "one"), other = adapters.add("other", work / "other");
    const auto forward = [](const Model& model, const std::vector<Adapters::Loaded>& chosen) {
      nn::Pass pass = nn::Pass::over({0, 4, 9, 10, 16});
      pass.stream().sequence_adapters = chosen;
      return model.forward({at::arange(16, at::kLong) * 7 % model.vocabulary()}, pass).hidden.detach();
    };
    const auto together = [&](const Model& model, const std::vector<Adapters::Loaded>& chosen) {
      const at::NoGradGuard no_gradient;
      return forward(model, chosen);
    };
    for (const std::vector<Adapters::Loaded>& chosen : {std::vector<Adapters::Loaded>{one, other, nullptr, one}, {}})
      EXPECT_TRUE(together(*base, chosen).equal(forward(*base, chosen)));
    EXPECT_TRUE(together(*with_one, {}).equal(forward(*with_one, {})));
    EXPECT_TRUE(together(*with_one, {}).equal(together(*base, {one, one, one, one})));
    EXPECT_FALSE(together(*with_one, {}).equal(together(*base, {})));
  }
}

TEST(Adapters, AreAddedReplacedAndRemovedByName) {
  const test::TemporaryFolder work;
  write_adapter(golden("llama"), lora, 1, work / "one");
  write_adapter(golden("llama"), lora, 2, work / "other");
  const auto base = load(golden("llama"), DTypeSetting::automatic);
  Adapters adapters(base);
  const auto first = adapters.add("a", work / "one");
  const Tensor before = logits(*base, {5}, {first}).front();
  EXPECT_EQ(test::refusal([&] { adapters.add("a", work / "other"); }),
            "adapters.a: an adapter of this name is loaded already\n    replace or remove it, or give another name");
  EXPECT_EQ(adapters.find("a"), first);
  const auto second = adapters.replace("a", work / "other");
  EXPECT_GT(second->version(), first->version());
  EXPECT_EQ(adapters.find("a"), second);
  EXPECT_FALSE(before.equal(logits(*base, {5}, {second}).front()));
  EXPECT_TRUE(before.equal(logits(*base, {5}, {first}).front()));  // of a pass that began before
  adapters.add("b", work / "one");
  ASSERT_EQ(adapters.list().size(), 2U);
  EXPECT_EQ(adapters.list()[1].name, "b");
  EXPECT_EQ(adapters.list()[1].r, 3);
  EXPECT_EQ(test::refusal([&] { adapters.get("c", "adapter"); }), "adapter: no adapter is called 'c'\n    known: a, b");
  adapters.remove("a");
  EXPECT_EQ(adapters.find("a"), nullptr);
  EXPECT_EQ(test::refusal([&] { adapters.remove("a"); }),
            "adapters.a: no adapter of this name is loaded\n    known: b");
}

// Against the definitions of PEFT 0.21.2, add_weighted_adapter: cat adds the products; linear adds A and B.
TEST(Adapters, AreAddedUpWithWeights) {
  const test::TemporaryFolder work;
  const char* const embedded = "{r: 3, alpha: 5, init: random, target_modules: [q_proj, embed_tokens, down_proj]}";
  write_adapter(golden("llama"), lora, 1, work / "a");
  write_adapter(golden("llama"), embedded, 2, work / "b");
  write_adapter(golden("llama"), dora, 3, work / "dora");
  write_adapter(golden("llama"), "{r: 2, init: random}", 3, work / "narrow");
  const auto base = load(golden("llama"), DTypeSetting::automatic);
  Adapters adapters(base);
  for (const char* name : {"a", "b", "dora", "narrow"}) adapters.add(name, work / name);
  const auto of = [&](const Adapters::Loaded& loaded) { return logits(*base, {6}, {loaded}).front(); };
  const auto near = [](const Tensor& one, const Tensor& other) {
    return (one - other).abs().max().item<double>() < 2e-5;
  };

  AdapterOptions half = adapter_in(work / "a"), minus = adapter_in(work / "b");
  half.weight = 0.5, minus.weight = -2, minus.name = "second";
  const Tensor both = logits(*load(golden("llama"), DTypeSetting::automatic, {half, minus}), {6}, {}).front();
  const auto cat = adapters.add_sum("cat", AdapterSum::Kind::cat, {{"a", 0.5}, {"b", -2}});
  EXPECT_TRUE(near(of(cat), both));
  EXPECT_EQ(adapters.list()[2].r, 6);  // a, b, cat

  // Of one adapter, linear is that adapter with another weight; (A + A) and (B + B) are four times the product.
  const auto quarter = adapters.add_sum("quarter", AdapterSum::Kind::linear, {{"a", -0.25}, {"a", -0.25}});
  AdapterOptions less = adapter_in(work / "a");
  less.weight = -1;
  EXPECT_TRUE(near(of(quarter), logits(*load(golden("llama"), DTypeSetting::automatic, {less}), {6}, {}).front()));
  const auto linear = adapters.add_sum("linear", AdapterSum::Kind::linear, {{"a", 1}, {"b", 1}});
  EXPECT_GT((of(linear) - of(adapters.add_sum("other", AdapterSum::Kind::cat, {{"a", 1}, {"b", 1}})))
                .abs()
                .max()
                .item<double>(),
            1e-4);

  const auto refused = [&](AdapterSum::Kind kind, const char* part) {
    return test::refusal([&] { adapters.add_sum("x", kind, {{"a", 1}, {part, 1}}); });
  };
  EXPECT_EQ(refused(AdapterSum::Kind::cat, "c"),
            "adapters.x: no adapter is called 'c'\n    known: a, b, cat, dora, linear, narrow, other, quarter");
  EXPECT_EQ(refused(AdapterSum::Kind::linear, "narrow"),
            "adapters.x: linear adds adapters of one rank, and model.layers.0.self_attn.o_proj has 3 and 2\n"
            "    cat adds those of different ranks");
  EXPECT_EQ(
      refused(AdapterSum::Kind::cat, "dora"),
      "adapters.x: adds up more than products of A and B (model.layers.0.self_attn.o_proj has DoRA, lora_bias, or a "
      "weight of its own)\n    merge such adapters: easydel merge");
}

TEST(Adapters, ThatDoNotFitLeaveTheOthers) {
  const test::TemporaryFolder work;
  write_adapter(golden("llama"), "{r: 2, target_modules: [q_proj], modules_to_save: [norm]}", 1, work / "norm");
  write_adapter(golden("llama"), "{r: 2, target_modules: [q_proj], modules_to_save: [lm_head]}", 1, work / "head");
  write_adapter(golden("qwen3"), lora, 1, work / "qwen3");
  const auto base = load(golden("llama"), DTypeSetting::automatic);
  Adapters adapters(base);
  const auto text = [&](const char* name) {
    return test::replaced(test::refusal([&] { adapters.replace("a", work / name); }), work.path().string(), "A");
  };
  EXPECT_EQ(text("norm"),
            "A/norm: trains model.layers.0.input_layernorm.weight, which adapters chosen by prompt cannot change\n"
            "    give it alone: lora.adapter, or --adapter with a folder");
  EXPECT_EQ(text("head"),
            "A/head: trains lm_head in full, which is not built yet for adapters chosen by prompt\n"
            "    give it alone: lora.adapter, or --adapter with a folder");
  EXPECT_NE(text("qwen3").find("the adapter was made for another model or with another configuration"),
            std::string::npos);
  EXPECT_TRUE(adapters.list().empty());
}

// Passes on one thread, changes on another: a pass has the bits of the adapter that it took.
TEST(Adapters, AreReplacedWhilePassesRun) {
  const test::TemporaryFolder work;
  const auto base = load(golden("llama"), DTypeSetting::automatic);
  Adapters adapters(base);
  std::map<int64_t, Tensor> expected;  // by rank
  for (const int64_t r : {1, 2}) {
    write_adapter(golden("llama"), str("{r: ", r, ", init: random}"), 1, work / std::to_string(r));
    expected[r] = logits(*base, {4}, {adapters.replace("a", work / std::to_string(r))}).front();
  }
  std::map<uint64_t, int64_t> rank_of;
  std::mutex mutex;
  std::atomic<bool> done = false;
  std::thread changes([&] {
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t r = 1 + i % 2;
      const std::scoped_lock lock(mutex);
      rank_of[adapters.replace("a", work / std::to_string(r))->version()] = r;
    }
    done = true;
  });
  while (!done) {
    const auto taken = adapters.find("a");
    const Tensor found = logits(*base, {4}, {taken}).front();
    const std::scoped_lock lock(mutex);
    const auto at = rank_of.find(taken->version());
    if (at == rank_of.end()) continue;  // the one before the first change
    EXPECT_TRUE(found.equal(expected[at->second]));
  }
  changes.join();
}

}  // namespace
}  // namespace easydel::models

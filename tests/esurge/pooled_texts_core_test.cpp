// Embeddings and scores of classes: computed in the engine's steps, they have the bits of the model's forward over each
// text alone.
#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>

#include <array>
#include <cstring>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/esurge/engine.h"
#include "easydel/models/embedding.h"
#include "easydel/tensor/threads.h"
#include "esurge/same_bits.h"
#include "esurge/wrapped_model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

Request pooled(std::vector<TokenId> ids, PooledPrompt how = {}) {
  Request out;
  out.prompt = std::move(ids);
  out.pooled = std::move(how);
  return out;
}

// By the model's forward over the text alone.
std::vector<float> vector_of(const models::Model& model, const Request& text) {
  const at::NoGradGuard no_gradient;
  const auto& ids = std::get<std::vector<TokenId>>(text.prompt);
  nn::Pass pass = nn::Pass::over({0, int64_t(ids.size())});
  models::Inputs inputs{at::tensor(std::vector<int64_t>(ids.begin(), ids.end()), at::kLong)};
  const std::vector<uint8_t>& types = text.pooled->type_ids;
  if (!types.empty()) inputs.token_types = at::tensor(std::vector<int64_t>(types.begin(), types.end()), at::kLong);
  const Tensor hidden = model.forward(inputs, pass).hidden;
  const bool classifies = model.class_head() && model.task() == models::Task::sequence_classification;
  models::EmbeddingSpec spec;
  if (!classifies) spec = models::read_embedding(model);
  const int64_t passed_over = spec.pools_prompt ? 0 : text.pooled->prompt_tokens;
  const Tensor row = classifies ? model.class_head()->scores(hidden, inputs.tokens, pass)
                                : models::embeddings_after_prompts(spec, hidden, inputs.tokens, pass, {passed_over});
  const Tensor numbers = row.to(at::kFloat).contiguous();
  return {numbers.const_data_ptr<float>(), numbers.const_data_ptr<float>() + numbers.numel()};
}

void expect_bits(const std::vector<float>& found, const std::vector<float>& expected, size_t index) {
  ASSERT_EQ(found.size(), expected.size()) << "text " << index;
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << "text " << index;
}

std::vector<TokenId> random_ids(Random& random, int64_t count, int64_t vocabulary) {
  std::vector<TokenId> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(TokenId(random.from(3, vocabulary - 1)));
  return out;
}

class PooledTexts : public SameBits {};

TEST_P(PooledTexts, HaveTheBitsOfTheForwardBesideGeneration) {
  int64_t cut = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    std::vector<Request> texts;
    std::vector<std::vector<float>> expected;
    const std::vector<TokenId> beginning = random_ids(random, 60, model_->vocabulary());
    for (int i = 0; i < 10; ++i) {
      std::vector<TokenId> ids(beginning.begin(), beginning.begin() + random.from(0, 60));
      for (const TokenId id : random_ids(random, random.from(1, 80), model_->vocabulary())) ids.push_back(id);
      texts.push_back(pooled(std::move(ids)));
      expected.push_back(vector_of(*model_, texts.back()));
    }
    const std::vector<Request> beside = requests(random, 6);
    const std::vector<std::string> answered = alone(beside);
    EngineSetup own = setup(std::array{16, 1, 100}[seed - 1], std::nullopt);
    own.config.max_num_batched_tokens = random.from(5, 100);
    own.config.overlap_execution = seed != 2;
    const tensor::Threads threads(seed == 2 ? 2 : 1);
    std::vector<Request> all = beside;
    all.insert(all.end(), texts.begin(), texts.end());
    const std::unique_ptr<StepEngine> engine = engine_for(own, all, 1, false);
    std::vector<std::string> bits(beside.size());
    std::vector<RequestOutput> found(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i < beside.size())
        engine->add(beside[i], [&bits, i](const RequestOutput& output) { bits[i] = bits_of(output); });
      engine->add(texts[i], [&found, i](const RequestOutput& output) { found[i] = output; });
      if (random.chance(50)) engine->step();
    }
    while (engine->step()) {
    }
    EXPECT_EQ(bits, answered) << "schedule " << seed;
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(found[i].finished && found[i].vector) << found[i].error;
      EXPECT_TRUE(found[i].outputs.empty());
      EXPECT_EQ(found[i].cached_tokens, 0) << "the index has no hidden states";
      expect_bits(*found[i].vector, expected[i], i);
    }
    cut += engine->counts().cut_prompts;
  }
  EXPECT_GT(cut, 0);
}

// Answers that grow take the pages of a text that is computed in part. It is computed again, in other parts.
TEST_P(PooledTexts, HaveTheSameBitsAfterPreemption) {
  EngineSetup own = setup(1, 80);
  own.config.max_num_batched_tokens = 8;
  own.config.scheduling_policy = SchedulingPolicy::priority;
  Random random(1);
  Request text = pooled(random_ids(random, 60, model_->vocabulary())), growing;
  text.sampling.priority = 1;
  growing.prompt = random_ids(random, 5, model_->vocabulary());
  growing.sampling.n = 4, growing.sampling.max_tokens = 15;
  growing.sampling.ignore_eos = true;
  StepEngine engine(own);
  RequestOutput found;
  engine.add(text, [&](const RequestOutput& output) { found = output; });
  engine.step();
  engine.add(growing, {});
  while (engine.step()) {
  }
  ASSERT_TRUE(found.vector) << found.error;
  if (GetParam().name.starts_with("story")) {
    EXPECT_GT(found.preemptions, 0);
  }
  expect_bits(*found.vector, vector_of(*model_, text), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, PooledTexts, testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

// Models without a language head, which may see both sides.
class Encoders : public testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<models::Model> loaded() { return models::load_model(test::test_data(GetParam()), {}); }
  static EngineSetup setup(std::shared_ptr<const models::Model> model) {
    EngineSetup out{.model = std::move(model), .pools_only = true};
    out.config.silent_mode = true;
    return out;
  }
};

TEST_P(Encoders, HaveTheBitsOfTheForwardInAnyCompany) {
  const auto model = loaded();
  Random random(3);
  const int64_t longest = model->max_positions() > 0 ? std::min<int64_t>(model->max_positions(), 60) : 60;
  std::vector<Request> texts;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 40; ++i) {
    texts.push_back(pooled(random_ids(random, random.from(1, longest), model->vocabulary())));
    const size_t size = std::get<std::vector<TokenId>>(texts.back().prompt).size();
    if (!model->causal() && model->config().find("type_vocab_size") && i % 3 == 0) {
      texts.back().pooled->type_ids.assign(size, 0);
      const Value& types = *model->config().find("type_vocab_size");
      if (types.as_int() > 1) std::fill_n(texts.back().pooled->type_ids.end() - int64_t(size / 2), size / 2, 1);
    }
    if (i % 4 == 1) texts.back().pooled->prompt_tokens = random.from(0, int64_t(size) + 2);
    expected.push_back(vector_of(*model, texts.back()));
  }
  EngineSetup own = setup(model);
  own.config.max_num_batched_tokens = longest;
  Engine engine(own);
  const std::vector<std::vector<float>> found = engine.encode(texts);
  for (size_t i = 0; i < texts.size(); ++i) expect_bits(found[i], expected[i], i);
  EXPECT_GT(engine.metrics().steps, 10);
  const int64_t before = engine.metrics().steps;
  Engine roomy(setup(model));
  EXPECT_EQ(roomy.encode(texts), found);
  EXPECT_LT(roomy.metrics().steps, before);
}

INSTANTIATE_TEST_SUITE_P(Models, Encoders,
                         testing::Values("encoders/sentences", "encoders/classes", "encoders/reranker",
                                         "encoders/decoder", "hf_goldens/bert_seqcls", "hf_goldens/llama_seqcls",
                                         "hf_goldens/random_bert_base", "hf_goldens/random_modernbert_mean"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

TEST(PooledRequests, AreRefusedWithOneClearError) {
  const auto model = models::load_model(test::test_data("encoders/sentences"), {});
  EngineSetup setup{.model = model, .pools_only = true};
  setup.config.silent_mode = true;
  setup.config.max_num_batched_tokens = 12;
  StepEngine engine(setup);
  const auto problem = [](StepEngine& of, Request request) {
    return test::refusal([&] { of.add(std::move(request), {}); });
  };
  Request plain;
  plain.prompt = std::vector<TokenId>{5};
  EXPECT_EQ(problem(engine, plain),
            "model: this engine makes vectors of whole texts, and generates and scores nothing\n    ask for a vector "
            "(pooled), or serve a causal language model");
  EXPECT_EQ(problem(engine, pooled(std::vector<TokenId>(13, 5))),
            "prompt: has 13 tokens, which one step computes whole; a step has at most 12\n    shorten the text, or "
            "raise esurge.max_num_batched_tokens");
  const int64_t longest = model->max_positions();
  EXPECT_EQ(problem(engine, pooled(std::vector<TokenId>(size_t(longest) + 1, 5))),
            str("prompt: has ", longest + 1, " tokens; the engine reads at most ", longest,
                "\n    raise esurge.max_model_len, if the model has the positions"));
  EXPECT_EQ(problem(engine, pooled({})), "prompt: has no tokens\n    give at least one token");
  EXPECT_EQ(problem(engine, pooled({-1})), str("prompt: has the token id -1; the model's vocabulary has ",
                                               model->vocabulary(), "\n    use the model's own tokenizer"));
  EXPECT_EQ(problem(engine, pooled({5, 6}, {.type_ids = {0}})),
            "pooled: has 1 type ids for 2 tokens\n    give one for each token");
  Request asks = pooled({5});
  asks.sampling.temperature = 0.5;
  EXPECT_EQ(problem(engine, asks), "sampling.temperature: has no effect on the vector of a text\n    leave it out");
  asks = pooled({5});
  asks.continuation = std::vector<TokenId>{6};
  EXPECT_EQ(problem(engine, asks),
            "continuation: a request gives a vector or scores a continuation, not both\n    give one of them");
  const char* const both = R"({"prompt": [5], "pooled": true, "continuation_token_ids": [6]})";
  EXPECT_EQ(test::refusal([&] { read_request(parse_json(both)); }),
            "request:1:27: pooled: a request gives a vector or scores a continuation, not both\n    give one of them");
  EXPECT_TRUE(read_request(parse_json(R"({"prompt": [5], "pooled": true})")).pooled);
  EXPECT_EQ(engine.requests(), 0);
  // A model that sees both sides is no engine that generates.
  setup.pools_only = false;
  EXPECT_EQ(test::refusal([&] { StepEngine{setup}; }),
            "model: it attends to both sides, so it cannot generate text\n    use a causal language model");
}

// The hidden states of one text are no numbers.
class Poisoned final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    models::Outputs out = WrappedModel::forward(inputs, pass);
    const std::vector<int64_t>& begins = pass.stream().cu_seqlens;
    for (size_t i = 0; i + 1 < begins.size(); ++i)
      if (begins[i + 1] - begins[i] == 7)
        out.hidden.slice(0, begins[i], begins[i + 1]).fill_(std::numeric_limits<float>::quiet_NaN());
    return out;
  }
};

TEST(PooledRequests, FailAloneIfTheirVectorIsNoNumber) {
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  EngineSetup setup{.model = std::make_shared<Poisoned>(model), .pools_only = true};
  setup.config.silent_mode = true;
  StepEngine engine(setup);
  std::vector<RequestOutput> found(3);
  for (size_t i = 0; i < 3; ++i)
    engine.add(pooled(std::vector<TokenId>(6 + i, 9)), [&found, i](const RequestOutput& output) { found[i] = output; });
  while (engine.step()) {
  }
  EXPECT_EQ(found[1].error, "model: the vector of the text is not made of numbers (NaN)");
  EXPECT_FALSE(found[1].vector);
  expect_bits(*found[0].vector, vector_of(*model, pooled(std::vector<TokenId>(6, 9))), 0);
  expect_bits(*found[2].vector, vector_of(*model, pooled(std::vector<TokenId>(8, 9))), 2);
}

}  // namespace
}  // namespace easydel::esurge

// Generation over cached keys and values that are codes, or of another dtype than the computation's: the same bits in
// any company, and text as good as before.
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "easydel/base/files.h"
#include "easydel/generation/generator.h"
#include "easydel/kernels/isa.h"
#include "easydel/nn/cache.h"
#include "easydel/tensor/threads.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

using models::DTypeSetting;
using nn::CacheFormat;
using nn::CacheSetting;

constexpr const char* story = "models/stories260K-hf";

std::shared_ptr<models::Model> model_of(const std::string& folder, const CacheSetting& format, DTypeSetting dtype) {
  static std::map<std::tuple<std::string, CacheSetting, DTypeSetting>, std::shared_ptr<models::Model>> models;
  auto& model = models[{folder, format, dtype}];
  if (!model) {
    models::LoadOptions options;
    options.dtype = dtype, options.cache_format = format;
    if (folder != story) {
      // Their own limit is 64.
      options.overrides = Value::map();
      options.overrides.set("max_position_embeddings", Value::integer(512));
    }
    model = models::load_model(test::test_data(folder), options);
  }
  return model;
}
std::shared_ptr<models::Model> story_model(const CacheSetting& format, DTypeSetting dtype) {
  return model_of(story, format, dtype);
}
const text::Tokenizer& story_tokenizer() {
  static const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  return *tokenizer;
}

struct Case {
  CacheSetting format;
  DTypeSetting dtype;
  std::string folder = story;
};
std::string text_of(const testing::TestParamInfo<Case>& info) {
  const auto& [setting, dtype, folder] = info.param;
  const CacheFormat format = setting.format;
  return std::string(format == CacheFormat::int8          ? "int8"
                     : format == CacheFormat::int4_values ? "int4_values"
                     : format == CacheFormat::e4m3        ? "e4m3"
                                                          : "bf16") +
         (setting.group_size > 0 ? "_groups" : "") + (dtype == DTypeSetting::fp32 ? "_under_fp32" : "_under_bf16") +
         (folder == story ? "" : "_of_" + folder.substr(folder.find('/') + 1));
}

class CacheFormats : public testing::TestWithParam<Case> {
 protected:
  const models::Model& model() const { return *model_of(GetParam().folder, GetParam().format, GetParam().dtype); }
  // A text as ids that the model has.
  std::vector<TokenId> ids(const std::string& text) const {
    std::vector<TokenId> out = story_tokenizer().encode(text);
    for (TokenId& id : out) id = TokenId(id % model().vocabulary());
    return out;
  }

  // Hidden states of some tokens that are read in pieces of `size`, then one by one for the last three.
  Tensor hidden(int64_t length, int64_t size, int64_t page_tokens) const {
    const at::NoGradGuard no_gradient;
    const std::vector<TokenId> text =
        ids(files::read(test::test_data("text/war_and_peace_held_out.txt")).substr(0, 2000));
    const Tensor tokens = at::tensor(std::vector<int64_t>(text.begin(), text.begin() + length + 3));
    nn::Cache cache(model().make_cache(1, 1)->shape(), 1, 1, page_tokens);
    std::vector<Tensor> out;
    for (int64_t begin = 0; begin < length + 3;) {
      const int64_t count = begin < length ? std::min(size, length - begin) : 1;
      const auto memory = cache.next({0}, {count});
      nn::Pass pass = nn::Pass::next(*memory, {length});
      out.push_back(model().forward({tokens.slice(0, begin, begin + count)}, pass).hidden);
      begin += count;
    }
    return at::cat(out);
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, CacheFormats,
    testing::Values(Case{CacheFormat::int8, DTypeSetting::fp32}, Case{CacheFormat::int8, DTypeSetting::bf16},
                    Case{CacheFormat::int4_values, DTypeSetting::fp32},
                    Case{CacheFormat::int4_values, DTypeSetting::bf16}, Case{CacheFormat::e4m3, DTypeSetting::fp32},
                    Case{CacheFormat::e4m3, DTypeSetting::bf16}, Case{CacheFormat::bf16, DTypeSetting::fp32}),
    text_of);
INSTANTIATE_TEST_SUITE_P(Groups, CacheFormats,
                         testing::Values(Case{{CacheFormat::int8, 4}, DTypeSetting::fp32},
                                         Case{{CacheFormat::int8, 2}, DTypeSetting::bf16},
                                         Case{{CacheFormat::int4_values, 4}, DTypeSetting::bf16},
                                         Case{{CacheFormat::e4m3, 4}, DTypeSetting::bf16}),
                         text_of);
// Multi-head latent attention, without and with an indexer.
INSTANTIATE_TEST_SUITE_P(LatentVectors, CacheFormats,
                         testing::Values(Case{CacheFormat::int8, DTypeSetting::fp32, "hf_goldens/deepseek_v3"},
                                         Case{CacheFormat::int8, DTypeSetting::bf16, "hf_goldens/deepseek_v3"},
                                         Case{{CacheFormat::int8, 2}, DTypeSetting::bf16, "hf_goldens/deepseek_v3"},
                                         Case{CacheFormat::e4m3, DTypeSetting::bf16, "hf_goldens/deepseek_v3"},
                                         Case{CacheFormat::bf16, DTypeSetting::fp32, "hf_goldens/deepseek_v3"},
                                         Case{CacheFormat::int8, DTypeSetting::bf16, "hf_goldens/deepseek_v32"},
                                         Case{CacheFormat::e4m3, DTypeSetting::fp32, "hf_goldens/deepseek_v32"},
                                         Case{CacheFormat::int8, DTypeSetting::bf16, "hf_goldens/longcat_flash"}),
                         text_of);

TEST_P(CacheFormats, HaveTheSameBitsHoweverAPromptIsCutByAnyThreadsAndInstructionSet) {
  const Tensor whole = hidden(150, 150, 128);
  for (const int64_t size : {1, 33, 149})
    for (const int64_t page_tokens : {1, 5, 128})
      EXPECT_TRUE(hidden(150, size, page_tokens).equal(whole)) << size << " in pages of " << page_tokens;
  for (const int64_t size : {1, 4})
    EXPECT_TRUE(hidden(5, size, 3).equal(hidden(5, 5, 128))) << size << " of a short prompt";
  {
    const tensor::Threads two(2);
    EXPECT_TRUE(hidden(150, 150, 128).equal(whole)) << "by two threads";
  }
  for (const kernels::Isa isa : kernels::available_isas()) {
    const kernels::UseIsa use(isa);
    EXPECT_TRUE(hidden(150, 70, 128).equal(whole)) << kernels::name(isa);
  }
}

TEST_P(CacheFormats, GiveARequestTheSameTokensAloneAndInAnyBatch) {
  std::vector<Request> requests;
  for (size_t i = 0; i < 6; ++i) {
    Request request;
    request.prompt = ids(i % 2 ? "Once upon a time, there was a big dog" : "Tom");
    request.config = {.max_new_tokens = 30 + int64_t(i), .do_sample = true, .temperature = 0.9};
    request.config.seed = i;
    if (i >= 4) request.config = {.max_new_tokens = 30, .num_beams = int64_t(i - 1)};
    requests.push_back(std::move(request));
  }
  std::vector<std::vector<TokenId>> alone;
  for (const Request& request : requests) alone.push_back(Generator(model(), nullptr).run({request})[0].tokens);
  for (const GeneratorOptions& options : {GeneratorOptions{.batch = 16}, {.batch = 9, .prefill_tokens = 3}}) {
    const auto results = Generator(model(), nullptr, options).run(requests);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(results[i].tokens, alone[i]) << options.batch << ", " << i;
  }
}

// The mean loss of the quickstart's held-out text in rows of 256 tokens, each of which attends to keys of the cache.
double held_out_loss(const models::Model& model) {
  const at::NoGradGuard no_gradient;
  const std::vector<TokenId> text =
      story_tokenizer().encode(files::read(test::test_data("text/war_and_peace_held_out.txt")));
  constexpr int64_t row = 256, rows = 8;  // together in one pass
  const int64_t count = int64_t(text.size() - 1) / (row * rows) * rows;
  double sum = 0;
  for (int64_t first = 0; first < count; first += rows) {
    const auto tokens = [&](int64_t shift) {
      const auto begin = text.begin() + first * row + shift;
      return at::tensor(std::vector<int64_t>(begin, begin + rows * row));
    };
    nn::Cache cache(model.make_cache(1, 1)->shape(), rows, row);
    std::vector<int64_t> slots, counts(rows, row);
    for (int64_t slot = 0; slot < rows; ++slot) slots.push_back(slot);
    const auto memory = cache.next(slots, counts);
    nn::Pass pass = nn::Pass::next(*memory, counts);
    const Tensor hidden = model.forward({tokens(0)}, pass).hidden;
    sum -= model.head().score(hidden, tokens(1), pass).logps.sum().item<double>();
  }
  return sum / double(count * row);
}

// The figures are in docs/numbers.md.
TEST(CacheFormat, KeepsTheLossOfTheHeldOutText) {
  for (const DTypeSetting dtype : {DTypeSetting::fp32, DTypeSetting::bf16}) {
    const double plain = held_out_loss(*story_model(CacheFormat::automatic, dtype));
    const auto change = [&](const CacheSetting& format) {
      return held_out_loss(*story_model(format, dtype)) / plain - 1;
    };
    EXPECT_LE(std::fabs(change(CacheFormat::int8)), 0.005);
    EXPECT_LE(std::fabs(change(CacheFormat::e4m3)), 0.01);
    EXPECT_LE(std::fabs(change(CacheFormat::int4_values)), 0.03);
    EXPECT_LE(std::fabs(change(CacheFormat::bf16)), 0.001);
    EXPECT_LE(std::fabs(change({CacheFormat::int8, 4})), 0.001);
    EXPECT_LE(std::fabs(change({CacheFormat::e4m3, 4})), 0.001);
    EXPECT_LE(std::fabs(change({CacheFormat::int4_values, 4})), 0.002);
  }
}

TEST(CacheFormat, TakesTheBytesOfItsCodesAndScales) {
  const auto bytes = [](const CacheSetting& format, const std::string& folder = story) {
    const auto cache = model_of(folder, format, DTypeSetting::fp32)->make_cache(1, 128);
    const auto memory = cache->next({0}, {128});
    return cache->bytes();
  };
  // Five layers of 128 tokens, four heads, keys and values of eight dimensions.
  EXPECT_EQ(bytes(CacheFormat::automatic), 5 * 128 * 4 * 2 * 8 * 4);
  EXPECT_EQ(bytes(CacheFormat::bf16), 5 * 128 * 4 * 2 * 8 * 2);
  EXPECT_EQ(bytes(CacheFormat::int8), 5 * 128 * 4 * 2 * (8 + 4));
  EXPECT_EQ(bytes(CacheFormat::e4m3), bytes(CacheFormat::int8));
  EXPECT_EQ(bytes(CacheFormat::int4_values), 5 * 128 * 4 * (8 + 4 + 4 + 4));
  EXPECT_EQ(bytes({CacheFormat::int8, 4}), 5 * 128 * 4 * 2 * (8 + 2 * 4));
  // Of latent attention a vector of 16 and a rotated part of 4, with a scale for each 4.
  const int64_t layers = int64_t(model_of("hf_goldens/deepseek_v3", {}, DTypeSetting::fp32)->cache_layers().size());
  EXPECT_EQ(bytes(CacheFormat::int8, "hf_goldens/deepseek_v3"), layers * 128 * (20 + 5 * 4));
}

}  // namespace
}  // namespace easydel::generation

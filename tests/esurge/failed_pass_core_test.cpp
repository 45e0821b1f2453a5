// A pass that fails loses the request that makes it fail and no other, whatever layers keep.
#include <gtest/gtest.h>

#include <map>
#include <new>

#include "esurge/same_bits.h"
#include "esurge/wrapped_model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

constexpr TokenId trap = 90;

// A model whose pass fails at its end if it has a certain token.
class Trapped final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    models::Outputs out = WrappedModel::forward(inputs, pass);
    if (inputs.tokens.eq(int64_t(trap)).any().item<bool>()) throw std::bad_alloc();
    return out;
  }
};

class FailedPass : public testing::TestWithParam<const char*> {};

TEST_P(FailedPass, LosesOneRequest) {
  const auto model =
      std::make_shared<Trapped>(models::load_model(test::test_data(std::string("hf_goldens/") + GetParam()), {}));
  EngineSetup setup;
  setup.model = model;
  setup.config.max_model_len = setup.config.max_num_batched_tokens = 64;
  setup.config.page_size = 16;
  setup.pages = 60;
  std::vector<Request> requests;
  for (TokenId first = 10; first < 14; ++first) {
    Request& request = requests.emplace_back();
    request.prompt = std::vector<TokenId>{first, 20, 21, 22, TokenId(first + 20)};
    request.sampling.max_tokens = 20, request.sampling.temperature = 0.9, request.sampling.seed = first;
    request.sampling.logprobs = 1;
    request.sampling.ignore_eos = true;
    request.sampling.allowed_token_ids = {5, 9, 17, 33, 40, 41, 50};
    request.sampling.return_token_ids = true;
    request.sampling.output_kind = OutputKind::final_only;
  }
  requests[3].prompt = std::vector<TokenId>{20, 21, trap};
  std::vector<std::string> alone;
  for (const Request& request : requests) {
    StepEngine engine(setup);
    alone.push_back(answers(engine, {request}).at(0));
  }
  EXPECT_EQ(alone[3].substr(0, 14), "std::bad_alloc");
  for (const bool overlaps : {false, true}) {
    setup.config.overlap_execution = overlaps;
    StepEngine engine(setup);
    std::map<size_t, std::string> found;
    const auto add = [&](size_t i) {
      engine.add(requests[i], [&found, i](const RequestOutput& output) { found[i] = bits_of(output); });
    };
    for (const size_t i : {0, 1}) add(i);
    for (int step = 0; step < 6; ++step) engine.step();
    for (const size_t i : {3, 2}) add(i);  // in one pass with the others
    while (engine.step()) {
    }
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(found[i], alone[i]) << i << (overlaps ? ", overlapped" : "");
    EXPECT_EQ(engine.metrics().requests_failed, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailedPass, testing::Values("llama", "mamba2", "qwen3_next"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace easydel::esurge

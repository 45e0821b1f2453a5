// A pass that fails loses the request that makes it fail and no other, whatever layers keep.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
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

class FailedPass : public testing::TestWithParam<const char*> {
 protected:
  static EngineSetup setup_of(std::shared_ptr<const models::Model> model) {
    EngineSetup setup;
    setup.model = std::move(model);
    setup.config.max_model_len = setup.config.max_num_batched_tokens = 64;
    setup.config.page_size = 16;
    setup.pages = 60;
    return setup;
  }
  static std::vector<Request> requests() {
    std::vector<Request> out;
    for (TokenId first = 10; first < 14; ++first) {
      Request& request = out.emplace_back();
      request.prompt = std::vector<TokenId>{first, 20, 21, 22, TokenId(first + 20)};
      request.sampling.max_tokens = 20, request.sampling.temperature = 0.9, request.sampling.seed = first;
      request.sampling.logprobs = 1;
      request.sampling.ignore_eos = true;
      request.sampling.allowed_token_ids = {5, 9, 17, 33, 40, 41, 50};
      request.sampling.return_token_ids = true;
      request.sampling.output_kind = OutputKind::final_only;
    }
    return out;
  }
  static std::vector<std::string> alone(const EngineSetup& setup, const std::vector<Request>& requests) {
    std::vector<std::string> out;
    for (const Request& request : requests) {
      StepEngine engine(setup);
      out.push_back(answers(engine, {request}).at(0));
    }
    return out;
  }
};

// While one lives, the n-th block of memory that a tensor asks for is refused.
class RefusedMemory final : public c10::Allocator {
 public:
  explicit RefusedMemory(int64_t number) : inner_(c10::GetCPUAllocator()), number_(number) {
    c10::SetCPUAllocator(this, 1);
  }
  ~RefusedMemory() override { c10::SetCPUAllocator(inner_, 1); }
  c10::DataPtr allocate(size_t bytes) override {
    if (++asked_ == number_) throw std::bad_alloc();
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { inner_->copy_data(to, from, bytes); }
  int64_t asked() const { return asked_; }

 private:
  c10::Allocator* const inner_;
  const int64_t number_;
  std::atomic<int64_t> asked_ = 0;
};

TEST_P(FailedPass, LosesOneRequest) {
  const auto model =
      std::make_shared<Trapped>(models::load_model(test::test_data(std::string("hf_goldens/") + GetParam()), {}));
  EngineSetup setup = setup_of(model);
  std::vector<Request> requests = FailedPass::requests();
  requests[3].prompt = std::vector<TokenId>{20, 21, trap};
  const std::vector<std::string> alone = FailedPass::alone(setup, requests);
  EXPECT_TRUE(alone[3].starts_with(
      "model: no memory is left to compute this request\n"
      "    shorten its prompt, or lower esurge.hbm_utilization or esurge.max_num_batched_tokens\n"))
      << alone[3];
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

TEST_P(FailedPass, OfMemoryThatIsRefusedOnceLosesOneRequestAtMost) {
  EngineSetup setup = setup_of(models::load_model(test::test_data(std::string("hf_goldens/") + GetParam()), {}));
  const std::vector<Request> requests = FailedPass::requests();
  const std::vector<std::string> alone = FailedPass::alone(setup, requests);
  for (const bool overlaps : {false, true}) {
    setup.config.overlap_execution = overlaps;
    // Returns how many blocks were asked for.
    const auto run = [&](int64_t number) {
      StepEngine engine(setup);
      std::map<size_t, std::string> found;
      const auto add = [&](size_t i) {
        engine.add(requests[i], [&found, i](const RequestOutput& output) { found[i] = bits_of(output); });
      };
      for (size_t i = 0; i < requests.size(); ++i) add(i);
      int64_t asked = 0, errors = 0;
      {
        const RefusedMemory refused(number);
        while (engine.step()) {
        }
        asked = refused.asked();
      }
      const std::string where = str("block ", number, overlaps ? ", overlapped" : "");
      for (size_t i = 0; i < requests.size(); ++i)
        if (found[i].starts_with("model: no memory is left"))
          ++errors;
        else
          EXPECT_EQ(found[i], alone[i]) << i << ", " << where;
      EXPECT_LE(errors, 1) << where;
      EXPECT_EQ(errors, engine.metrics().requests_failed) << where;
      add(0);  // the engine goes on
      while (engine.step()) {
      }
      EXPECT_EQ(found[0], alone[0]) << where;
      return asked;
    };
    const int64_t all = run(std::numeric_limits<int64_t>::max());
    EXPECT_GT(all, 200);
    for (int64_t number = 1; number <= all; number = number * 8 / 5 + 1) run(number);
  }
}

// A model whose hidden states are NaN in the sequences of a pass that have a certain token.
class Poisoned final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    models::Outputs out = WrappedModel::forward(inputs, pass);
    const nn::Stream& on = pass.stream();
    int64_t row = 0;
    for (size_t i = 0; i + 1 < on.cu_seqlens.size(); ++i) {
      const int64_t begin = on.cu_seqlens[i], end = on.cu_seqlens[i + 1];
      const int64_t rows = on.requested.empty() ? end - begin : on.requested[i];
      if (inputs.tokens.slice(0, begin, end).eq(int64_t(trap)).any().item<bool>())
        out.hidden.slice(0, row, row + rows).fill_(std::numeric_limits<float>::quiet_NaN());
      row += rows;
    }
    return out;
  }
};

TEST(FailedRow, EndsItsRequestWithOneClearErrorAndNoOther) {
  EngineSetup setup;
  setup.model = std::make_shared<Poisoned>(models::load_model(test::test_data("hf_goldens/llama"), {}));
  setup.config.max_model_len = setup.config.max_num_batched_tokens = 64;
  setup.pages = 8;
  std::vector<Request> requests(4);
  for (size_t i = 0; i < 4; ++i) {
    requests[i].prompt = std::vector<TokenId>{TokenId(10 + i), 20, i % 2 == 1 ? trap : 21};
    requests[i].sampling.max_tokens = 6, requests[i].sampling.temperature = 0, requests[i].sampling.logprobs = 0;
    requests[i].sampling.return_token_ids = true;
    requests[i].sampling.output_kind = OutputKind::final_only;
    requests[i].sampling.allowed_token_ids = {5, 9, 17, 33};
  }
  requests[3].sampling.prompt_logprobs = 0;
  std::vector<RequestOutput> found(4);
  StepEngine engine(setup);
  for (size_t i = 0; i < 4; ++i)
    engine.add(requests[i], [&found, i](const RequestOutput& output) { found[i] = output; });
  while (engine.step()) {
  }
  for (const size_t i : {0, 2}) {
    StepEngine own(setup);
    EXPECT_EQ(bits_of(found[i]), answers(own, {requests[i]}).at(0));
    EXPECT_EQ(found[i].outputs.at(0).token_ids.size(), 6u);
  }
  for (const size_t i : {1, 3}) {
    EXPECT_EQ(found[i].error,
              "model: its scores are not numbers (NaN)\n"
              "    its weights contain NaN, or their values overflow the dtype");
    EXPECT_EQ(found[i].outputs.at(0).finish_reason, FinishReason::error);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailedPass, testing::Values("llama", "mamba2", "qwen3_next"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace easydel::esurge

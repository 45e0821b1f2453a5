#include "easydel/train/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "easydel/generation/generator.h"
#include "easydel/train/sequence_logps.h"
#include "support/data.h"
#include "support/ranks.h"

namespace easydel::train {
namespace {

using Ids = std::vector<int32_t>;

TEST(Sampler, ContinuesEachPromptAsItDoesAlone) {
  const auto folder = test::test_data("models/stories260K-hf");
  const std::shared_ptr<models::Model> model = models::load_model(folder, {});
  const Sampler sampler(model, nullptr);
  const std::vector<Ids> prompts = {{1, 403, 407}, {1, 410}};
  const generation::GenerationConfig config{
      .max_new_tokens = 6, .do_sample = true, .seed = 3, .num_return_sequences = 2, .temperature = 5.0};
  const std::vector<Ids> all = sampler.run(prompts, config);
  ASSERT_EQ(all.size(), 4u);
  for (const Ids& one : all) EXPECT_EQ(one.size(), 6u);
  EXPECT_NE(all[0], all[1]);
  EXPECT_EQ(sampler.run({prompts[1]}, config), (std::vector<Ids>{all[2], all[3]}));
}

TEST(Sampler, GivesTheEndTokenToo) {
  const std::shared_ptr<models::Model> model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const Sampler sampler(model, nullptr);
  const Ids prompt = {1, 403, 407};
  const Ids plain = sampler.run({prompt}, {.max_new_tokens = 4}).at(0);
  const Ids ended = sampler.run({prompt}, {.max_new_tokens = 4, .eos_token_id = {plain[1]}}).at(0);
  EXPECT_EQ(ended, Ids(plain.begin(), plain.begin() + 2));
}

std::shared_ptr<models::Model> trainable(const std::string& folder, models::DTypeSetting dtype) {
  models::LoadOptions load;
  load.training = true;
  load.dtype = dtype;
  load.param_dtype = models::DTypeSetting::fp32;
  return models::load_model(test::test_data(folder), load);
}

// The training forward of samples, with gradients.
Tensor scored(const models::Model& model, const std::vector<SampleRequest>& requests,
              const std::vector<Sample>& samples, double temperature) {
  std::vector<data::Example> examples;
  std::vector<const data::Example*> all;
  const size_t group = samples.size() / requests.size();
  for (size_t i = 0; i < samples.size(); ++i)
    examples.push_back(learned_example(requests[i / group].prompt, samples[i].ids));
  for (const data::Example& example : examples) all.push_back(&example);
  return score_sequences(model, flat_batch(all), {}, {.temperature = temperature}).logps;
}

// The greatest difference between the sampler's log-probabilities and those of the training forward.
float difference(const std::vector<Sample>& samples, const Tensor& scored) {
  const Tensor values = scored.detach().contiguous();
  const float* next = values.const_data_ptr<float>();
  float worst = 0;
  size_t count = 0;
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.logps.size(), sample.ids.size());
    for (const float logp : sample.logps) worst = std::max(worst, std::abs(logp - next[count++]));
  }
  EXPECT_EQ(int64_t(count), values.size(0));
  return worst;
}

std::vector<SampleRequest> mixed_prompts() {
  std::vector<SampleRequest> out{{{1, 40, 41}, 5}, {{1}, 6}, {{1}, 7}};
  for (int32_t id = 7; id < 40; ++id) out[2].prompt.push_back(id);
  return out;
}

// The weights after a step of plain gradient descent.
void learn(models::Model& model, const Tensor& logps) {
  (-logps.mean()).backward();
  const c10::AutoGradMode no_grad(false);
  for (nn::Entry& entry : model.parameters().entries()) {
    if (!entry.shard.grad().defined()) continue;
    entry.shard.sub_(entry.shard.grad(), 0.05);
    entry.shard.mutable_grad() = Tensor();
    entry.written();
  }
}

TEST(Sampler, GivesTheBitsOfTheTrainingForwardBeforeAndAfterAStep) {
  for (const char* folder : {"models/stories260K-hf", "hf_goldens/llama", "hf_goldens/qwen3", "hf_goldens/gemma3_text",
                             "hf_goldens/mistral", "hf_goldens/gpt2", "hf_goldens/mixtral"})
    for (const auto dtype : {models::DTypeSetting::fp32, models::DTypeSetting::bf16}) {
      const auto model = trainable(folder, dtype);
      const Sampler sampler(model, nullptr);
      EXPECT_TRUE(sampler.same_bits()) << folder;
      const auto requests = mixed_prompts();
      generation::GenerationConfig config{
          .max_new_tokens = 17, .do_sample = true, .num_return_sequences = 3, .temperature = 0.8, .top_k = 0};
      for (const bool truncated : {false, true}) {
        if (truncated) config.top_k = 20, config.top_p = 0.9, config.min_p = 0.01;
        const std::vector<Sample> samples = sampler.sample(requests, config, truncated ? 64 : 4);
        const Tensor logps = scored(*model, requests, samples, config.temperature);
        EXPECT_EQ(difference(samples, logps), 0) << folder << " truncated " << truncated;
        if (!truncated) learn(*model, logps);
      }
    }
}

TEST(Sampler, TellsTheProbabilityAmongTheTokensThatWereLeft) {
  const auto model = trainable("models/stories260K-hf", models::DTypeSetting::fp32);
  const Sampler sampler(model, nullptr);
  generation::GenerationConfig config{.max_new_tokens = 8, .do_sample = true, .top_k = 1};
  for (const Sample& sample : sampler.with_kept_tokens().sample(mixed_prompts(), config))
    for (size_t i = 0; i < sample.ids.size(); ++i) {
      EXPECT_EQ(sample.kept_logps[i], 0);
      EXPECT_LT(sample.logps[i], 0);
      EXPECT_EQ(sample.kept[i], Ids{sample.ids[i]});
    }
  config.top_k = 0, config.top_p = 1;
  for (const Sample& sample : sampler.with_kept_tokens().sample(mixed_prompts(), config)) {
    EXPECT_EQ(sample.kept, std::vector<Ids>(sample.ids.size()));
    EXPECT_EQ(sample.kept_logps, sample.logps);
  }
}

TEST(Sampler, DrawsTheSameWhateverTheBatchAndALargerGroupBeginsWithTheSmaller) {
  const auto model = trainable("models/stories260K-hf", models::DTypeSetting::fp32);
  const Sampler sampler(model, nullptr);
  const auto requests = mixed_prompts();
  generation::GenerationConfig config{.max_new_tokens = 12, .do_sample = true, .num_return_sequences = 2};
  const auto ids = [](const std::vector<Sample>& samples, size_t at) { return samples[at].ids; };
  const auto small = sampler.sample(requests, config, 2);
  config.num_return_sequences = 5;
  const auto large = sampler.sample(requests, config, 64);
  const auto alone = sampler.sample({requests[1]}, config, 1);
  for (size_t prompt = 0; prompt < 3; ++prompt)
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(ids(small, 2 * prompt + i), ids(large, 5 * prompt + i));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(ids(alone, i), ids(large, 5 + i));
  EXPECT_NE(ids(large, 0), ids(large, 1));
  EXPECT_NE(draw_seed(1, 0, 0), draw_seed(1, 1, 0));
  EXPECT_NE(draw_seed(1, 0, 0), draw_seed(1, 0, 1));
}

// On two ranks with whole weights (dp) or parts of them (fsdp).
std::shared_ptr<models::Model> model_on(const test::Meeting& meeting, bool fsdp) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 60;
  models::LoadOptions load;
  const std::vector<int64_t> sizes = fsdp ? std::vector<int64_t>{1, 2, 1, 1, 1} : std::vector<int64_t>{2, 1, 1, 1, 1};
  load.team = collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), sizes), options);
  return models::load_model(test::test_data("models/stories260K-hf"), load);
}

std::vector<SampleRequest> five_requests() {
  std::vector<SampleRequest> out;
  for (int32_t i = 0; i < 5; ++i) out.push_back({{1, 403 + i}, uint64_t(7 + i)});
  out[3].max_new_tokens = 2;
  return out;
}

// Five prompts on two ranks: one samples two of them, the other three; then one prompt, which one rank samples.
TEST(Sampler, RanksShareRequestsAndGetWhatOneRankSamples) {
  const generation::GenerationConfig config{
      .max_new_tokens = 6, .do_sample = true, .num_return_sequences = 2, .temperature = 2.0, .top_k = 50};
  for (const bool fsdp : {false, true})
    test::run_ranks(2, [&](const test::Meeting& meeting) {
      const auto whole = models::load_model(test::test_data("models/stories260K-hf"), {});
      const auto model = model_on(meeting, fsdp);
      std::vector<SampleRequest> requests = five_requests();
      for (const size_t count : {5, 1}) {
        requests.resize(count);
        const std::vector<Sample> alone = Sampler(whole, nullptr).with_kept_tokens().sample(requests, config);
        for (const int64_t batch : {64, 2}) {
          const std::vector<Sample> shared = Sampler(model, nullptr).with_kept_tokens().sample(requests, config, batch);
          ASSERT_EQ(shared.size(), alone.size());
          for (size_t i = 0; i < alone.size(); ++i) {
            EXPECT_EQ(shared[i].ids, alone[i].ids) << i;
            EXPECT_EQ(shared[i].logps, alone[i].logps) << i;
            EXPECT_EQ(shared[i].kept_logps, alone[i].kept_logps) << i;
            EXPECT_EQ(shared[i].kept, alone[i].kept) << i;
            EXPECT_EQ(shared[i].reason, alone[i].reason) << i;
          }
        }
      }
    });
}

// Only the rank that has the last prompt sees what is wrong with it, and the other one does not wait.
TEST(Sampler, ARankThatCannotSampleEndsTheOthers) {
  std::vector<SampleRequest> requests = five_requests();
  requests[4].prompt.push_back(100000);
  for (const bool fsdp : {false, true})
    test::run_ranks(2, [&](const test::Meeting& meeting) {
      const auto model = model_on(meeting, fsdp);
      const std::string refused =
          test::refusal([&] { Sampler(model, nullptr).sample(requests, {.max_new_tokens = 3, .do_sample = true}); });
      if (meeting.world.rank == 1)
        EXPECT_EQ(refused,
                  "prompt 3: holds the token id 100000; the model's vocabulary has 512\n    use the model's own "
                  "tokenizer");
      else
        EXPECT_EQ(refused, std::string(fsdp ? "generation" : "run") +
                               ": another rank could not go on\n    its own message says why");
    });
}

TEST(Sampler, NamesFamiliesThatComputeGeneratedTokensInAnotherOrder) {
  for (const char* folder : {"hf_goldens/deepseek_v2", "hf_goldens/mamba2"})
    EXPECT_FALSE(Sampler(trainable(folder, models::DTypeSetting::fp32), nullptr).same_bits()) << folder;
}

}  // namespace
}  // namespace easydel::train

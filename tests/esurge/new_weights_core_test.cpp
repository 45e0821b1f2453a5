// Weights that change while the engine runs: a request has those that it began with.
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/esurge/engine.h"
#include "easydel/models/model.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

// The story model with its embeddings turned around, in a folder of its own.
class WeightsWhileItRuns : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::TemporaryFolder>();
    const test::fs::path from = test::test_data("models/stories260K-hf");
    test::fs::copy(from, *folder / "new", test::fs::copy_options::recursive);
    const auto file = weights::SafetensorsFile::open(from / "model.safetensors");
    std::vector<weights::OutTensor> tensors;
    for (const std::string& name : file->names()) {
      const weights::TensorView view = file->at(name);
      tensors.push_back({name, view.dtype, view.shape, [view, name](const auto& sink) {
                           std::vector<std::byte> bytes(view.bytes.begin(), view.bytes.end());
                           const size_t row = bytes.size() / size_t(view.shape[0]);
                           if (name.ends_with("embed_tokens.weight"))
                             std::swap_ranges(bytes.begin() + ptrdiff_t(300 * row),
                                              bytes.begin() + ptrdiff_t(400 * row),
                                              bytes.begin() + ptrdiff_t(400 * row));
                           sink(bytes.data(), bytes.size());
                         }});
    }
    weights::write_safetensors(*folder / "new/model.safetensors", tensors);
    before = models::load_model(from, {});
    after = models::load_model(*folder / "new", {});
  }
  static void TearDownTestSuite() { before = after = nullptr, folder = nullptr; }

  static EngineSetup setup(std::shared_ptr<const models::Model> model, std::string fingerprint) {
    EngineSetup out;
    out.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
    out.model = std::move(model), out.fingerprint = std::move(fingerprint);
    out.config.max_model_len = 256, out.config.page_size = 16;
    out.pages = 60;
    return out;
  }
  static Request request(std::string prompt, int64_t tokens = 40) {
    Request out;
    out.prompt = std::move(prompt);
    out.sampling.temperature = 0, out.sampling.max_tokens = tokens;
    out.sampling.output_kind = OutputKind::final_only;
    return out;
  }
  static std::string text(const std::shared_ptr<const models::Model>& model, const Request& asked) {
    return Engine(setup(model, "")).generate(asked).outputs.at(0).text;
  }
  static std::function<NewWeights()> give(std::shared_ptr<const models::Model> model) {
    return [model] { return NewWeights{model, "new"}; };
  }

  static inline std::unique_ptr<test::TemporaryFolder> folder;
  static inline std::shared_ptr<const models::Model> before, after;
};

TEST_F(WeightsWhileItRuns, ARequestHasThoseThatItBeganWith) {
  const Request asked = request("Once upon a time, there was a little girl", 150);
  const std::string old_text = text(before, asked), new_text = text(after, asked);
  ASSERT_NE(old_text, new_text);
  Engine engine(setup(before, "old"));
  EXPECT_EQ(engine.generate(asked).outputs.at(0).text, old_text) << "and its pages are in the index";
  std::promise<void> runs;
  std::promise<RequestOutput> first;
  Request streamed = asked;
  streamed.sampling.output_kind = OutputKind::cumulative;
  engine.add(streamed, [&, begun = false](RequestOutput output) mutable {
    if (!std::exchange(begun, true)) runs.set_value();
    if (output.finished) first.set_value(std::move(output));
  });
  runs.get_future().wait();
  std::thread updating([&] { engine.update_model_weights(give(after)); });
  // Requests are taken all the time. Those that come early have the old weights, the others the new ones.
  std::vector<RequestOutput> outputs;
  do {
    outputs.push_back(engine.generate(asked));
  } while (outputs.back().fingerprint != "new");
  updating.join();
  outputs.push_back(first.get_future().get());
  EXPECT_EQ(outputs.back().fingerprint, "old");
  for (const RequestOutput& output : outputs)
    EXPECT_EQ(output.outputs.at(0).text, output.fingerprint == "old" ? old_text : new_text);
  EXPECT_EQ(outputs.at(outputs.size() - 2).cached_tokens, 0) << "pages of old weights were used";
  EXPECT_EQ(engine.info().fingerprint, "new");
  EXPECT_GT(engine.generate(asked).cached_tokens, 0);
}

TEST_F(WeightsWhileItRuns, RequestsCanBeAbortedForThem) {
  Engine engine(setup(before, "old"));
  std::promise<RequestOutput> ended;
  engine.add(request("Tom", 200), [&](RequestOutput output) { ended.set_value(std::move(output)); });
  engine.pause();
  EXPECT_EQ(test::refusal([&] { engine.update_model_weights(give(after)); }),
            "model: the engine is paused, so its 1 requests never finish with the present weights\n"
            "    resume it, or abort them");
  engine.update_model_weights(give(after), KnownRequests::abort);
  engine.resume();
  const RequestOutput output = ended.get_future().get();
  EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::abort);
  EXPECT_EQ(engine.generate(request("Tom")).outputs.at(0).text, text(after, request("Tom")));
}

TEST_F(WeightsWhileItRuns, OfAnotherShapeAreRefusedAndTheOldOnesStay) {
  Engine engine(setup(before, "old"));
  const std::string old_text = engine.generate(request("Tom")).outputs.at(0).text;
  const auto other = models::load_model(test::test_data("hf_goldens/gemma3_text"), {});
  EXPECT_EQ(test::refusal([&] { engine.update_model_weights(give(other)); }),
            str("model: the new weights have a vocabulary of ", other->vocabulary(),
                " tokens, the engine's of 512\n    make an engine for it"));
  models::LoadOptions options;
  options.dtype = models::dtype_setting("bf16", "dtype");
  const auto other_format = models::load_model(test::test_data("models/stories260K-hf"), options);
  EXPECT_EQ(test::refusal([&] { engine.update_model_weights(give(other_format)); }),
            "model: the new weights belong to a model whose layers keep other keys and values than the engine's\n"
            "    make an engine for it");
  EXPECT_THROW(engine.update_model_weights([]() -> NewWeights { throw std::runtime_error("no"); }), std::runtime_error);
  const RequestOutput output = engine.generate(request("Tom"));
  EXPECT_EQ(output.outputs.at(0).text, old_text);
  EXPECT_EQ(output.fingerprint, "old");
  EXPECT_GT(output.cached_tokens, 0) << "what was cached is still right";
}

TEST_F(WeightsWhileItRuns, CanBeLetGoUntilOthersCome) {
  auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const std::weak_ptr<const models::Model> present = model;
  Engine engine(setup(std::move(model), "old"));
  std::promise<RequestOutput> ended;
  engine.pause();
  const RequestId id = engine.add(request("Tom"), [&](RequestOutput output) { ended.set_value(std::move(output)); });
  EXPECT_EQ(test::refusal([&] { engine.release_model_state(); }),
            "model: the engine has 1 requests, which need the weights\n    let them finish, or abort them");
  engine.abort(id);
  engine.resume();
  ended.get_future().wait();
  engine.generate(request("Tom"));
  EXPECT_GT(engine.metrics().cache_pages_used, 0) << "the index has them";
  engine.release_model_state();
  EXPECT_TRUE(present.expired());
  EXPECT_EQ(test::refusal([&] { engine.load_adapter("a", *folder / "new"); }),
            "adapter: the engine has let its model go\n    update its weights before");
  EXPECT_THROW(engine.update_model_weights([]() -> NewWeights { throw std::runtime_error("no"); }), std::runtime_error);
  std::promise<RequestOutput> waited;
  engine.add(request("Tom"), [&](RequestOutput output) { waited.set_value(std::move(output)); });
  auto answer = waited.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(engine.metrics().cache_pages_used, 0);
  engine.update_model_weights(give(after));
  EXPECT_EQ(answer.get().outputs.at(0).text, text(after, request("Tom")));
}

}  // namespace
}  // namespace easydel::esurge

// The engine with its threads: results come, whoever asks, aborts, throws or leaves.
#include "easydel/esurge/engine.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <stdexcept>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/text/output/answer_language.h"
#include "easydel/text/unicode.h"
#include "esurge/wrapped_model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

EngineSetup story() {
  static const auto folder = test::test_data("models/stories260K-hf");
  static const auto model = models::load_model(folder, {});
  static const auto tokenizer = text::Tokenizer::load(folder);
  EngineSetup setup;
  setup.model = model, setup.tokenizer = tokenizer;
  setup.config.max_model_len = 256;
  setup.config.max_num_batched_tokens = 256;
  setup.pages = 40;
  return setup;
}

// A model whose pass fails if it has a certain token.
class Trap final : public WrappedModel {
 public:
  Trap(std::shared_ptr<const models::Model> inner, TokenId token) : WrappedModel(std::move(inner)), token_(token) {}
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    if (inputs.tokens.eq(int64_t(token_)).any().item<bool>()) throw std::bad_alloc();
    return WrappedModel::forward(inputs, pass);
  }

 private:
  TokenId token_;
};

Request request_of(std::string prompt, int64_t max_tokens = 12) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

TEST(Engine, AnswersManyCallersAtOnce) {
  Engine engine(story());
  const std::string alone = engine.generate(request_of("Once upon a time")).outputs.at(0).text;
  EXPECT_EQ(alone, ", there was a little girl named Lily. She");
  std::vector<std::string> texts(6);
  std::vector<std::thread> callers;
  for (std::string& text : texts)
    callers.emplace_back([&] { text = engine.generate(request_of("Once upon a time")).outputs.at(0).text; });
  for (std::thread& caller : callers) caller.join();
  for (const std::string& text : texts) EXPECT_EQ(text, alone);
  EXPECT_EQ(engine.metrics().requests_finished, 7);
  EXPECT_GT(engine.metrics().cached_prompt_tokens, 0);
}

TEST(Engine, StreamsPiecesThatAreTheWholeText) {
  Engine engine(story());
  Request request = request_of("Tom", 30);
  const std::string whole = engine.generate(request).outputs.at(0).text;
  for (const OutputKind kind : {OutputKind::delta, OutputKind::cumulative}) {
    request.sampling.output_kind = kind;
    std::string joined, last;
    const RequestOutput end = engine.stream(request, [&](const RequestOutput& output) {
      joined += output.outputs.at(0).delta_text;
      last = output.outputs.at(0).text;
      return true;
    });
    EXPECT_EQ(joined, whole);
    EXPECT_EQ(end.outputs.at(0).accumulated_text, whole);
    if (kind == OutputKind::cumulative) {
      EXPECT_EQ(last, whole);
    }
  }
}

TEST(Engine, SeparatesTheReasoningOfAConversation) {
  EngineSetup setup = story();
  setup.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  setup.config.reasoning_parser = "deepseek_r1";
  Engine engine(std::move(setup));
  Request request = request_of("", 60);
  request.prompt = Conversation{parse_json(R"([{"role": "user", "content": "Hi"}])"), {}, {}};
  request.sampling.guided_decoding = GuidedDecoding{};
  request.sampling.guided_decoding->regex = "<think>ab</think>ok";
  request.sampling.output_kind = OutputKind::final_only;
  const RequestOutput output = engine.generate(request);
  ASSERT_EQ(output.outputs.size(), 1u) << output.error;
  EXPECT_EQ(output.outputs[0].accumulated_text, "<think>ab</think>ok");
  EXPECT_EQ(output.outputs[0].reasoning_content, "ab");
  EXPECT_EQ(output.outputs[0].text, "ok");
  EXPECT_TRUE(output.outputs[0].tool_calls.is_null());
}

TEST(Engine, MakesTheCallsThatALanguageAsksFor) {
  Engine engine(story());
  const Value tools = parse_json(
      R"([{"function": {"name": "f", "parameters": {"properties": {"x": {"enum": ["a", "b"]}}, "required": ["x"],
          "additionalProperties": false}}}])");
  const text::AnswerRules rules{.tools = {&tools.items[0]}, .required = true, .parallel = false};
  for (const char* format : {"hermes", "mistral", "deepseek_v31"}) {
    Request request = request_of("Tom", 200);
    request.constraint = text::answer_language({format, ""}, rules);
    request.sampling.temperature = 1;
    request.sampling.seed = 3;
    const RequestOutput output = engine.generate(request);
    ASSERT_EQ(output.outputs.size(), 1u) << output.error;
    const text::Message message = text::parse_output(output.outputs[0].text, {format, ""});
    ASSERT_EQ(message.tool_calls.size(), 1u) << output.outputs[0].text;
    EXPECT_EQ(message.tool_calls[0].name, "f");
    const std::string& arguments = message.tool_calls[0].arguments;
    EXPECT_TRUE(arguments == R"({"x": "a"})" || arguments == R"({"x": "b"})") << arguments;
  }
  Request both = request_of("Tom", 9);
  both.constraint = text::constrain::Language{};
  both.sampling.guided_decoding = GuidedDecoding{};
  both.sampling.guided_decoding->json_object = true;
  EXPECT_THROW(engine.generate(both), UserError);
}

// scripts/trials/constrained_answers.py does the same with random schemas.
TEST(Engine, AnswersBySchemasWhateverIsDrawnGuessedAndPreempted) {
  EngineSetup setup = story();
  setup.config.page_size = 16, setup.pages = 20;
  setup.config.num_speculative_tokens = 4;
  StepEngine engine(setup);
  std::vector<RequestOutput> outputs(80);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Request request = request_of("As JSON: ", 200);
    request.sampling.temperature = 1.5, request.sampling.seed = int64_t(i);
    request.sampling.output_kind = OutputKind::final_only;
    request.sampling.guided_decoding = GuidedDecoding{};
    request.sampling.guided_decoding->json = parse_json(
        R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer",
            "minimum": 0, "maximum": 120}, "tags": {"type": "array", "items": {"enum": ["a", "b c"]}, "minItems": 1,
            "maxItems": 3}}, "required": ["name", "age", "tags"], "additionalProperties": false})");
    engine.add(request, [&outputs, i](RequestOutput output) { outputs[i] = std::move(output); });
  }
  while (engine.step()) {
  }
  size_t whole = 0;
  for (const RequestOutput& output : outputs) {
    ASSERT_EQ(output.error, "");
    const CompletionOutput& one = output.outputs.at(0);
    if (one.finish_reason == FinishReason::length) continue;
    const Value document = parse_json(one.text);
    ASSERT_EQ(document.entries.size(), 3u) << one.text;
    EXPECT_LE(text::count_characters(document.find("name")->scalar), 8) << one.text;
    const std::optional<int64_t> age = document.find("age")->as_int();
    EXPECT_TRUE(age && *age >= 0 && *age <= 120) << one.text;
    const std::vector<Value>& tags = document.find("tags")->items;
    EXPECT_TRUE(tags.size() >= 1 && tags.size() <= 3) << one.text;
    for (const Value& tag : tags) EXPECT_TRUE(tag.scalar == "a" || tag.scalar == "b c") << one.text;
    ++whole;
  }
  EXPECT_GT(whole, 60u);
  EXPECT_GT(engine.metrics().preemptions, 0);
  EXPECT_GT(engine.metrics().accepted_draft_tokens, 0);
}

TEST(Engine, EndsReasoningWhenItsBudgetIsUsedUp) {
  Engine engine(story());
  const auto text_of = [&](int64_t budget, const std::string& begun, const std::string& answer) {
    Request request = request_of("Tom", 60);
    request.sampling.guided_decoding.reset();
    request.sampling.seed = 1;
    // Whatever the model wants to write, it is `answer`, as far as the budget lets it.
    if (!answer.empty()) {
      request.sampling.guided_decoding = GuidedDecoding{};
      request.sampling.guided_decoding->regex = answer;
    }
    const auto end = text::reasoning_end({"", "qwen3"}, begun, text::OutputOptions::Thinking::unset);
    request.reasoning_budget = ReasoningBudget{budget, *end};
    const RequestOutput output = engine.generate(request);
    EXPECT_EQ(output.error, "");
    return output.outputs.at(0).text;
  };
  const std::string inside = text_of(5, "<think>\n", "");
  const size_t end = inside.find("</think>");
  ASSERT_NE(end, std::string::npos) << inside;
  EXPECT_EQ(inside.find("</think>", end + 1), std::string::npos) << "it ends once: " << inside;
  EXPECT_LT(end, 40u);
  EXPECT_LE(text_of(0, "<think>\n", "").find("</think>"), 1u) << "perhaps after a space";
  // Reasoning that ended by itself, and an answer that does not begin with it, are left alone.
  EXPECT_EQ(text_of(20, "<think>\n", "a</think>bcdefghijklmnopq"), "a</think>bcdefghijklmnopq");
  EXPECT_EQ(text_of(3, "", "abcdefghijklmnopqrstuvw"), "abcdefghijklmnopqrstuvw");
  EXPECT_FALSE(text::reasoning_end({"", "qwen3"}, "<think>\n\n</think>\n", text::OutputOptions::Thinking::unset));
}

TEST(Engine, EndsAStreamThatItsReaderLeaves) {
  Engine engine(story());
  int calls = 0;
  const RequestOutput end = engine.stream(request_of("Tom", 200), [&](const RequestOutput&) { return ++calls < 3; });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(end.outputs.at(0).finish_reason, FinishReason::abort);
  EXPECT_LT(end.num_generated_tokens, 200);
}

TEST(Engine, GoesOnAfterAListenerThrows) {
  log::set_level(log::Level::error);
  Engine engine(story());
  std::promise<void> called;
  std::future<void> came = called.get_future();
  engine.add(request_of("Tom", 200), [&, first = true](const RequestOutput&) mutable {
    if (std::exchange(first, false)) called.set_value();
    throw std::runtime_error("no more");
  });
  came.wait();
  EXPECT_EQ(engine.generate(request_of("Once upon a time")).outputs.at(0).text,
            ", there was a little girl named Lily. She");
  engine.drain();
  log::set_level(log::Level::info);
  const EngineMetrics metrics = engine.metrics();
  EXPECT_EQ(metrics.requests_finished, 1);
  EXPECT_EQ(metrics.requests_failed + metrics.requests_aborted, 1);
}

TEST(Engine, EndsTheRequestWhosePassFailsAndNoOther) {
  EngineSetup setup = story();
  setup.model = std::make_shared<Trap>(setup.model, 300);
  StepEngine engine(setup);
  std::vector<RequestOutput> outputs(3);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Request request = request_of("");
    request.prompt = std::vector<TokenId>{1, 403, 407, 261, 378};
    if (i == 1) request.prompt = std::vector<TokenId>{1, 403, 300};
    request.sampling.output_kind = OutputKind::final_only;
    request.sampling.logprobs = 0;
    engine.add(request, [&outputs, i](RequestOutput output) { outputs[i] = std::move(output); });
  }
  while (engine.step()) {
  }
  EXPECT_EQ(outputs[1].error,
            "model: no memory is left to compute this request\n"
            "    shorten its prompt, or lower esurge.hbm_utilization or esurge.max_num_batched_tokens");
  EXPECT_EQ(outputs[1].outputs.at(0).finish_reason, FinishReason::error);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(outputs[i].error, "");
    EXPECT_EQ(outputs[i].outputs.at(0).text, ", there was a little girl named Lily. She");
  }
  EXPECT_EQ(outputs[0].outputs.at(0).logprobs, outputs[2].outputs.at(0).logprobs);
}

TEST(Engine, FinishesWhatItHasWhenItDrainsAndTakesNothingNew) {
  Engine engine(story());
  std::promise<RequestOutput> promised;
  std::future<RequestOutput> output = promised.get_future();
  Request request = request_of("Tom", 40);
  request.sampling.output_kind = OutputKind::final_only;
  engine.add(request, [&](RequestOutput last) { promised.set_value(std::move(last)); });
  engine.drain();
  EXPECT_EQ(output.get().num_generated_tokens, 40);
  EXPECT_EQ(test::refusal([&] { engine.generate(request_of("Tom")); }),
            "request: the engine is draining: it finishes what it has and takes nothing new");
}

TEST(Engine, WaitsWhileItIsPaused) {
  Engine engine(story());
  engine.pause();
  auto answer = std::async(std::launch::async, [&] { return engine.generate(request_of("Tom", 5)); });
  while (engine.metrics().waiting_requests == 0) std::this_thread::yield();
  EXPECT_EQ(engine.metrics().generated_tokens, 0);
  engine.resume();
  EXPECT_EQ(answer.get().num_generated_tokens, 5);
}

TEST(Engine, LeavesNoCallerWaitingWhenItGoes) {
  std::promise<RequestOutput> promised;
  std::future<RequestOutput> output = promised.get_future();
  {
    Engine engine(story());
    Request request = request_of("Tom", 200);
    request.sampling.output_kind = OutputKind::final_only;
    engine.add(request, [&](RequestOutput last) { promised.set_value(std::move(last)); });
  }
  EXPECT_TRUE(output.get().finished);
}

TEST(Engine, TakesNothingAfterItsTermination) {
  Engine engine(story());
  std::promise<RequestOutput> ended;
  engine.pause();
  engine.add(request_of("Tom", 100), [&](RequestOutput output) { ended.set_value(std::move(output)); });
  engine.terminate();
  EXPECT_EQ(ended.get_future().get().outputs.at(0).finish_reason, FinishReason::abort);
  engine.terminate();
  engine.drain();
  engine.abort(1);
  const std::string refused = "esurge: the engine is terminated\n    make another one";
  EXPECT_EQ(test::refusal([&] { engine.generate(request_of("Tom", 5)); }), refused);
  EXPECT_EQ(test::refusal([&] { engine.stream(request_of("Tom", 5), [](const RequestOutput&) { return true; }); }),
            refused);
  EXPECT_EQ(test::refusal([&] { engine.update_model_weights([]() -> NewWeights { return {}; }); }), refused);
  EXPECT_EQ(test::refusal([&] { engine.reset_prefix_cache(); }), refused);
  EXPECT_EQ(engine.metrics().requests_aborted, 1);
}

// silent_mode leaves what verbose asks for.
TEST(Engine, LogsRequestsIfItIsAskedTo) {
  std::vector<std::string> lines;
  std::mutex mutex;
  log::set_sink([&](log::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  for (const bool verbose : {false, true}) {
    EngineSetup setup = story();
    setup.config.silent_mode = true, setup.config.verbose = verbose;
    Engine(setup).generate(request_of("Tom", 5));
  }
  log::set_sink(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("esurge: request 1 ended after ")) << lines[0];
  EXPECT_NE(lines[0].find(" s (length): 3 tokens of the prompt, 0 of them cached, 5 generated, preempted 0 times"),
            std::string::npos)
      << lines[0];
}

TEST(Engine, MeasuresWhatItDoes) {
  EngineSetup setup = story();
  setup.config.sampler_metrics = true;
  Engine engine(setup);
  Request request = request_of("Tom", 8);
  GuidedDecoding guided;
  guided.regex = "[a-z ]{1,40}";
  request.sampling.guided_decoding = guided;
  request.sampling.stop_token_ids = {2};
  const RequestOutput output = engine.generate(request);
  const EngineMetrics metrics = engine.metrics();
  const int64_t tokens = output.num_generated_tokens;
  EXPECT_EQ(metrics.queue_seconds.count(), 1);
  EXPECT_EQ(metrics.prefill_seconds.count(), 1);
  EXPECT_EQ(metrics.first_token_seconds.count(), 1);
  EXPECT_EQ(metrics.between_tokens_seconds.count(), tokens - 1);
  EXPECT_EQ(metrics.request_seconds.count(), 1);
  EXPECT_EQ(metrics.step_seconds.count(), metrics.steps);
  EXPECT_EQ(metrics.request_preemptions.count(), 1);
  EXPECT_EQ(metrics.request_preemptions.sum(), 0);
  EXPECT_EQ(metrics.request_recomputed_tokens.count(), 0) << "nothing was preempted";
  EXPECT_EQ(metrics.mask_seconds.count(), tokens);
  EXPECT_EQ(metrics.entropy.count(), tokens);
  EXPECT_EQ(metrics.chosen_negative_logprob.count(), tokens);
  EXPECT_NEAR(metrics.chosen_negative_logprob.sum(), -output.outputs.at(0).cumulative_logprob, 1e-9);
  EXPECT_EQ(metrics.request_prompt_tokens.sum(), double(output.prompt_token_ids.size()));
  EXPECT_EQ(metrics.request_generated_tokens.sum(), double(tokens));
  EXPECT_EQ(metrics.step_tokens.sum(), double(int64_t(output.prompt_token_ids.size()) + tokens - 1));
}

TEST(Engine, ParsesTheAnswerToAConversation) {
  EngineSetup setup = story();
  setup.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  setup.config.reasoning_parser = "deepseek_r1";
  Engine engine(setup);
  Request request = request_of("", 60);
  request.prompt = Conversation{parse_json(R"([{"role": "user", "content": "Tom"}])")};
  GuidedDecoding guided;
  guided.choice = {"<think>a b</think>c d"};
  request.sampling.guided_decoding = guided;
  request.sampling.stop_token_ids = {2};
  const CompletionOutput one = engine.generate(request).outputs.at(0);
  EXPECT_EQ(one.accumulated_text, "<think>a b</think>c d");
  EXPECT_EQ(one.reasoning_content, "a b");
  EXPECT_EQ(one.text, "c d");
}

// What one answer was in all results of a stream.
CompletionOutput joined(const std::vector<RequestOutput>& outputs, size_t index) {
  CompletionOutput out;
  out.tool_calls = Value::list();
  for (const RequestOutput& output : outputs) {
    const CompletionOutput& one = output.outputs.at(index);
    out.text += one.text, out.reasoning_content += one.reasoning_content, out.delta_text += one.delta_text;
    for (const Value& call : one.tool_calls.items) out.tool_calls.items.push_back(call);
  }
  return out;
}

TEST(Engine, ParsesStreamsOfAnswersToConversations) {
  EngineSetup setup = story();
  setup.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  setup.config.reasoning_parser = "deepseek_r1", setup.config.tool_parser = "hermes";
  Engine engine(setup);
  Request request = request_of("", 400);
  request.prompt = Conversation{
      parse_json(R"([{"role": "user", "content": "Tom"}])"),
      parse_json(R"([{"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}}])")};
  GuidedDecoding guided;
  guided.choice = {
      "<think>a b < c</think>so <b>:\n<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": 1}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": [2]}}\n</tool_call>"};
  request.sampling.guided_decoding = guided;
  request.sampling.stop_token_ids = {2};
  request.sampling.n = 2, request.sampling.temperature = 1, request.sampling.seed = 5;
  request.sampling.output_kind = OutputKind::final_only;
  const RequestOutput whole = engine.generate(request);
  const CompletionOutput& right = whole.outputs.at(0);
  EXPECT_EQ(right.reasoning_content, "a b < c");
  EXPECT_EQ(right.text.find("<tool"), std::string::npos);
  EXPECT_NE(right.text.find("so <b>:"), std::string::npos);
  ASSERT_EQ(right.tool_calls.items.size(), 2u);
  EXPECT_EQ(right.tool_calls.items[1].find("function")->find("arguments")->scalar, R"({"to": [2]})");
  for (const OutputKind kind : {OutputKind::delta, OutputKind::cumulative}) {
    request.sampling.output_kind = kind;
    std::vector<RequestOutput> outputs;
    engine.stream(request, [&](const RequestOutput& output) {
      outputs.push_back(output);
      return true;
    });
    EXPECT_GT(outputs.size(), 10u);
    for (const size_t index : {0, 1}) {
      const CompletionOutput all = joined(outputs, index), last = outputs.back().outputs.at(index);
      EXPECT_EQ(all.delta_text, right.text);
      const CompletionOutput& found = kind == OutputKind::delta ? all : last;
      EXPECT_EQ(found.text, right.text);
      EXPECT_EQ(found.reasoning_content, right.reasoning_content);
      EXPECT_EQ(to_json(found.tool_calls), to_json(right.tool_calls));
      EXPECT_EQ(last.accumulated_text, right.accumulated_text);
    }
    // What came is a beginning of the whole, and a call is there before the last result.
    std::string reasoning;
    size_t calls = 0;
    for (const RequestOutput& output : outputs) {
      const CompletionOutput& one = output.outputs.at(0);
      reasoning = kind == OutputKind::delta ? reasoning + one.reasoning_content : one.reasoning_content;
      EXPECT_TRUE(right.reasoning_content.starts_with(reasoning)) << reasoning;
      if (!output.finished) calls = std::max(calls, one.tool_calls.items.size());
    }
    EXPECT_GE(calls, 1u);
  }
  // Results that nobody fetched are joined.
  request.sampling.output_kind = OutputKind::delta;
  std::vector<RequestOutput> outputs;
  engine.stream(request, [&](const RequestOutput& output) {
    outputs.push_back(output);
    if (outputs.size() == 1)
      while (engine.metrics().requests_finished < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  });
  EXPECT_EQ(outputs.size(), 2u);
  const CompletionOutput all = joined(outputs, 1);
  EXPECT_EQ(all.text, right.text);
  EXPECT_EQ(all.reasoning_content, right.reasoning_content);
  EXPECT_EQ(to_json(all.tool_calls), to_json(right.tool_calls));
}

TEST(Engine, StopsAtStringsOutsideOfReasoningAlone) {
  EngineSetup setup = story();
  setup.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  setup.config.reasoning_parser = "deepseek_r1";
  Request request = request_of("", 60);
  request.prompt = Conversation{parse_json(R"([{"role": "user", "content": "Tom"}])")};
  GuidedDecoding guided;
  guided.choice = {"<think>a. b</think>c. d"};
  request.sampling.guided_decoding = guided;
  request.sampling.stop_token_ids = {2};
  request.sampling.stop = config::Many<std::string>{". "};
  {
    const CompletionOutput one = Engine(setup).generate(request).outputs.at(0);
    EXPECT_EQ(one.accumulated_text, "<think>a. b</think>c");
    EXPECT_EQ(std::get<std::string>(one.stop_reason), ". ");
    EXPECT_EQ(one.reasoning_content, "a. b");
    EXPECT_EQ(one.text, "c");
  }
  setup.config.ignore_stop_strings_in_reasoning = false;
  EXPECT_EQ(Engine(setup).generate(request).outputs.at(0).accumulated_text, "<think>a");
}

TEST(Engine, RefusesRequestsThatItCannotServe) {
  Engine engine(story());
  const auto refused = [&](const auto& change) {
    Request request = request_of("Tom");
    change(request);
    return test::refusal([&] { engine.generate(request); });
  };
  EXPECT_EQ(refused([](Request& r) {
              r.prompt = std::vector<TokenId>{5, 512};
            }),
            "prompt: has the token id 512; the model's vocabulary has 512\n    use the model's own tokenizer");
  EXPECT_EQ(refused([](Request& r) {
              r.sampling.logit_bias = {{"9999", 1.0}};
            }),
            "logit_bias: has the token id 9999; the model's vocabulary has 512\n    use the model's own tokenizer");
  EXPECT_EQ(refused([](Request& r) {
              r.sampling.extra_args = Value::map();
              r.sampling.extra_args.set("output_scores", Value::boolean(true));
            }),
            "extra_args.output_scores: is not built yet for the engine\n    use `easydel generate`");
  EXPECT_EQ(refused([](Request& r) { r.prompt = Conversation{parse_json(R"([{"role": "user", "content": "x"}])")}; }),
            "messages: the model has no chat template\n    give a prompt, or model.chat_template");
  EXPECT_EQ(refused([](Request& r) { r.sampling.temperature = 1, r.sampling.n = int64_t(1) << 40; }),
            "n: 1099511627776 choices are more than esurge.max_num_seqs 32\n"
            "    ask for fewer choices, or raise esurge.max_num_seqs");
  EXPECT_EQ(engine.metrics().requests_refused, 5);
}

}  // namespace
}  // namespace easydel::esurge

#include "easydel/train/episodes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/train/model_tools.h"
#include "support/data.h"

namespace easydel::train {
namespace {

std::shared_ptr<const text::Tokenizer> tokenizer_of(const std::string& chat_template = "") {
  const auto folder = test::test_data("models/stories260K-chat");
  if (chat_template.empty()) return text::Tokenizer::load(folder);
  static const Value sources = parse_json(files::read_compressed(test::test_data("templates/templates.json.gz")));
  const Value* const source = sources.find(chat_template);
  return text::Tokenizer::load(folder, source ? source->scalar : chat_template);
}

Value message(const std::string& role, const std::string& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", Value::text(content));
  return out;
}

// Says as many words as it is asked to, and remembers what it heard.
class Parrot final : public Environment {
 public:
  explicit Parrot(int turns) : turns_(turns) {}
  std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) override {
    heard.assign(episodes.size(), {});
    return std::vector<EnvironmentAnswer>(episodes.size());
  }
  std::vector<EnvironmentAnswer> step(std::span<const Turn> turns) override {
    std::vector<EnvironmentAnswer> out;
    for (const Turn& turn : turns) {
      auto& before = heard.at(turn.episode);
      before.push_back(turn.message);
      out.push_back(
          {{message("user", said(before.size()))}, 0.5 * double(before.size()), int(before.size()) == turns_});
    }
    return out;
  }
  static std::string said(size_t turn) { return str("Go on, part ", turn, "."); }

  std::vector<std::vector<Value>> heard;  // of each episode

 private:
  int turns_;
};

// A model that says what a test gives, and what it was asked.
struct Scripted {
  std::vector<std::vector<int32_t>> turns;
  std::vector<SampleRequest> asked = {};
  std::vector<Sample> operator()(const std::vector<SampleRequest>& requests, int64_t results) {
    std::vector<Sample> out;
    for (const SampleRequest& request : requests)
      for (int64_t i = 0; i < results; ++i) {
        Sample& one = out.emplace_back();
        one.ids = turns.at(asked.size() % turns.size());
        one.logps.assign(one.ids.size(), -1.0F), one.kept_logps = one.logps;
        asked.push_back(request);
      }
    return out;
  }
};

struct Ran {
  std::vector<Episode> episodes;
  std::vector<SampleRequest> asked;
};

Ran run(const std::shared_ptr<const text::Tokenizer>& tokenizer, std::unique_ptr<Environment> environment,
        std::vector<std::vector<int32_t>> turns, EpisodeSettings settings, int64_t each = 1) {
  Episodes episodes(tokenizer, std::move(settings), std::move(environment));
  Value messages = Value::list();
  messages.items.push_back(message("user", "Tell me a story."));
  const Value row = Value::map();
  const std::vector<int32_t> prompt =
      tokenizer->encode(TurnTemplate(tokenizer).prompt(messages, {}), {.add_special_tokens = false});
  Scripted model{std::move(turns)};
  Ran out;
  out.episodes = episodes.run({{.prompt = prompt, .row = row, .messages = messages, .seed = 7}}, each,
                              [&](const auto& requests, int64_t results) { return model(requests, results); });
  out.asked = model.asked;
  return out;
}

std::vector<int32_t> ids_of(const text::Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> out = tokenizer.encode(text, {.add_special_tokens = false});
  out.push_back(*tokenizer.eos_id());
  return out;
}

EpisodeSettings long_episodes() { return {.max_completion_length = 4096, .format = {"hermes", ""}}; }

// 204 episodes of random tokens, among them bytes of split characters.
TEST(Episodes, KeepWhatWasSampledAndInsertAnswersAsTheTemplateWritesThem) {
  std::mt19937 random(3);
  for (const char* name : {"", "Qwen-Qwen2.5-7B-Instruct.jinja", "meta-llama-Llama-3.1-8B-Instruct.jinja",
                           "google-gemma-2-2b-it.jinja", "trl-qwen3_instruct_2507.jinja", "trl-llama3.jinja"}) {
    const auto tokenizer = tokenizer_of(name);
    // The end of a turn and what follows it, from the rendering of a conversation of words.
    const text::ChatRenderer renderer(tokenizer);
    Value conversation = Value::list();
    conversation.items = {message("user", "Tell me a story."), message("assistant", "words"),
                          message("user", Parrot::said(1))};
    const std::string whole = renderer.text(conversation, {.add_generation_prompt = true});
    const std::string between = whole.substr(whole.find("words") + 5);
    for (int episode = 0; episode < 34; ++episode) {
      const size_t count = 1 + random() % 4;
      std::vector<std::vector<int32_t>> turns(count);
      for (auto& turn : turns) {
        for (size_t length = random() % 12; length > 0; --length) turn.push_back(int32_t(3 + random() % 500));
        turn.push_back(*tokenizer->eos_id());
      }
      const Ran ran = run(tokenizer, std::make_unique<Parrot>(int(count)), turns, long_episodes());
      const Episode& made = ran.episodes.at(0);
      const Sample& all = made.sample;
      ASSERT_EQ(all.inserted.size(), all.ids.size());
      ASSERT_EQ(all.logps.size(), all.ids.size());
      ASSERT_EQ(ran.asked.size(), count);
      size_t at = 0;
      for (size_t turn = 0; turn < count; ++turn) {
        std::vector<int32_t> before = made.prompt;
        before.insert(before.end(), all.ids.begin(), all.ids.begin() + std::ptrdiff_t(at));
        ASSERT_EQ(ran.asked[turn].prompt, before) << name;
        for (const int32_t id : turns[turn]) {
          ASSERT_EQ(all.ids.at(at), id);
          ASSERT_EQ(all.inserted[at], 0);
          ASSERT_EQ(all.logps[at++], -1.0F);
        }
        std::vector<int32_t> inserted;
        for (; at < all.ids.size() && all.inserted[at]; ++at) {
          inserted.push_back(all.ids[at]);
          ASSERT_EQ(all.logps[at], 0.0F);
        }
        ASSERT_EQ(inserted.empty(), turn + 1 == count);
        if (turn > 0 || inserted.empty()) continue;
        // The end token was sampled already.
        std::vector<int32_t> expected = tokenizer->encode(between, {.add_special_tokens = false});
        if (expected.front() == *tokenizer->eos_id()) expected.erase(expected.begin());
        EXPECT_EQ(inserted, expected) << name;
      }
      ASSERT_EQ(at, all.ids.size());
    }
  }
}

TEST(Episodes, RewardTurnsAndTellTheEnvironmentWhatTheModelSaid) {
  const auto tokenizer = tokenizer_of();
  auto parrot = std::make_unique<Parrot>(3);
  const Parrot& heard = *parrot;
  Episodes episodes(tokenizer, long_episodes(), std::move(parrot));
  Value messages = Value::list();
  messages.items.push_back(message("user", "Tell me a story."));
  const Value row = Value::map();
  const std::vector<int32_t> prompt = {1, 5, 6};
  Scripted model{{ids_of(*tokenizer, "One day"), ids_of(*tokenizer, "a cat ran")}};
  const auto sample = [&](const auto& requests, int64_t results) { return model(requests, results); };
  const std::vector<Episode> made =
      episodes.run({{prompt, row, messages, {}, 7}, {prompt, row, messages, {}, 8}}, 2, sample);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made[0].turn_rewards, (std::vector<double>{0.5, 1, 1.5}));
  ASSERT_EQ(heard.heard.at(3).size(), 3u);
  EXPECT_EQ(heard.heard[3][0].find("content")->scalar, "a cat ran");
  EXPECT_EQ(made[0].answer, "One day");
  // The first turn of a group is asked for once, later ones one by one with draws of their own.
  ASSERT_EQ(model.asked.size(), 12u);
  EXPECT_EQ(model.asked[0].seed, model.asked[1].seed);
  EXPECT_NE(model.asked[0].seed, model.asked[2].seed);
  std::set<uint64_t> seeds;
  for (size_t i = 4; i < 12; ++i) seeds.insert(model.asked[i].seed);
  EXPECT_EQ(seeds.size(), 8u);
}

TEST(Episodes, EndWithTheirTurnsAndTheirTokens) {
  const auto tokenizer = tokenizer_of();
  const std::vector<std::vector<int32_t>> words{ids_of(*tokenizer, "One day a cat ran")};
  EpisodeSettings settings = long_episodes();
  settings.max_steps = 2;
  const Episode two = run(tokenizer, std::make_unique<Parrot>(9), words, settings).episodes.at(0);
  EXPECT_EQ(two.turn_rewards.size(), 2u);
  EXPECT_EQ(two.sample.inserted.back(), 0) << "nothing follows the last turn";
  EXPECT_TRUE(two.sample.ended());

  const auto between = int64_t(two.sample.ids.size()) - 2 * std::ssize(words[0]);
  settings.max_completion_length = std::ssize(words[0]) + between;
  const Ran full = run(tokenizer, std::make_unique<Parrot>(9), words, settings);
  EXPECT_EQ(full.episodes.at(0).turn_rewards.size(), 1u) << "there is no token left for another turn";
  EXPECT_EQ(full.episodes[0].sample.ids, words[0]);
  EXPECT_FALSE(full.episodes[0].sample.ended());
  ++settings.max_completion_length;
  const Ran more = run(tokenizer, std::make_unique<Parrot>(9), words, settings);
  ASSERT_EQ(more.asked.size(), 2u);
  EXPECT_EQ(more.asked[1].max_new_tokens, 1);
  settings.max_turn_length = 3;
  const Ran short_turns = run(tokenizer, std::make_unique<Parrot>(9), words, settings);
  EXPECT_EQ(short_turns.asked[0].max_new_tokens, 3);
  EXPECT_EQ(short_turns.asked[1].max_new_tokens, 1) << "the episode leaves less than a turn may have";
  settings.max_turn_length.reset();
  settings.max_positions = int64_t(more.asked[0].prompt.size()) + 4;
  EXPECT_EQ(run(tokenizer, std::make_unique<Parrot>(9), words, settings).asked.at(0).max_new_tokens, 4);
}

TEST(Episodes, AnswerCallsOfTools) {
  const auto tokenizer = tokenizer_of("Qwen-Qwen2.5-7B-Instruct.jinja");
  const auto call = [&](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  EpisodeSettings settings = long_episodes();
  settings.tools = {"calculator"};
  settings.max_tool_calls = 2;
  const auto inserted = [&](const std::vector<std::string>& turns) {
    std::vector<std::vector<int32_t>> ids;
    for (const std::string& turn : turns) ids.push_back(ids_of(*tokenizer, turn));
    const Ran ran = run(tokenizer, nullptr, ids, settings);
    const Sample& all = ran.episodes.at(0).sample;
    std::vector<int32_t> out;
    for (size_t i = 0; i < all.ids.size(); ++i)
      if (all.inserted[i]) out.push_back(all.ids[i]);
    return tokenizer->decode(out, true);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string product = call("calculator", R"({"expression": "6 * 7"})");
  EXPECT_TRUE(has(inserted({product, "It is 42."}), "<tool_response>\n42\n</tool_response>"));
  EXPECT_TRUE(has(inserted({call("search", "{}"), "no"}), "error: there is no tool 'search'"));
  EXPECT_TRUE(has(inserted({call("calculator", R"({"expression": "6 *"})"), "no"}), "error: it ends where"));
  EXPECT_TRUE(has(inserted({call("calculator", "{}"), "no"}), "error: give the argument 'expression'"));
  const std::string many = inserted({product + product + product, "no"});
  EXPECT_TRUE(has(many, "42\n</tool_response>\n<tool_response>\n42\n"));
  EXPECT_TRUE(has(many, "error: only 2 calls are answered in a turn"));
  EXPECT_EQ(inserted({"It is 42."}), "") << "a turn without a call ends the episode";
}

TEST(Episodes, RefuseTemplatesThatChangeWhatTheyHaveWritten) {
  const auto refused = [](const std::string& source, EpisodeSettings settings, bool environment) {
    return test::refusal([&] {
      Episodes(tokenizer_of(source), std::move(settings), environment ? std::make_unique<Parrot>(1) : nullptr);
    });
  };
  const std::string counts =
      "{{ messages | length }}{% for message in messages %}{{ message.content }}</s>{% endfor %}";
  EXPECT_EQ(refused(counts, {}, true),
            "chat template: changes what it has written when a conversation goes on: token 1 was '1' and becomes '3'\n"
            "    give a template that only appends, as model.chat_template");
  EXPECT_EQ(refused("", {.tools = {"python"}}, false),
            "trainer.tool_names: 'python' is not a tool that is built in\n    built in: calculator; a program of "
            "trainer.environment can have others");
}

TEST(ModelTools, CalculateExpressions) {
  for (const auto& [expression, value] : {std::pair{"6*7", "42"},
                                          {"1 + 2 * 3 - 4 / 8", "6.5"},
                                          {"-2 ** 2", "-4"},
                                          {"2^3^2", "512"},
                                          {"2 ** -1", "0.5"},
                                          {"(1+2)*(3+4)", "21"},
                                          {"-7 % 3", "2"},
                                          {"sqrt(2)", "1.4142135623731"},
                                          {"max(1, 2, min(9, 3))", "3"},
                                          {"2*pi", "6.28318530717959"},
                                          {"1e3", "1000"},
                                          {".5 + .25", "0.75"},
                                          {"round(2.6)", "3"},
                                          {"1/3", "0.333333333333333"},
                                          {"2^100", "1.26765060022823e+30"},
                                          {"", "error: it ends where a number should be"},
                                          {"1/0", "error: division by zero"},
                                          {"(1", "error: a parenthesis is not closed"},
                                          {"1 2", "error: '2' does not belong here"},
                                          {"exp(1000)", "error: the result is not a finite number"},
                                          {"inf", "error: 'inf' is not known"},
                                          {"system(1)", "error: 'system' is not known"},
                                          {"sqrt(1, 2)", "error: 'sqrt' takes one number"},
                                          {"$", "error: '$' is not a number"}})
    EXPECT_EQ(calculated(expression), value) << expression;
  EXPECT_EQ(calculated(std::string(3000, '(')), "error: it is nested too deep");
  EXPECT_EQ(calculated(std::string(3000, '-') + "1"), "error: it is nested too deep");
  EXPECT_EQ(calculated(std::string(5000, '1')), "error: the expression is too long");
}

}  // namespace
}  // namespace easydel::train

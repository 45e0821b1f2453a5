#include "easydel/elarge/line_answers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

LineModel loaded(const std::string& name) {
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  const auto folder = test::test_data(name);
  return {models::load_model(folder, options), text::Tokenizer::load(folder), {}};
}

const LineModel& story_model() {
  static const LineModel model = loaded("models/stories260K-hf");
  return model;
}

// The answers in the order of the lines; each line has exactly one.
std::vector<Value> answers_of(const std::vector<std::string>& lines, const LineSettings& settings = {},
                              const LineModel& model = story_model()) {
  std::vector<Value> out(lines.size());
  answer_lines(lines, model, settings, [&](size_t line, const std::string& answer) {
    EXPECT_TRUE(out[line].is_null()) << "a second answer to line " << line;
    out[line] = parse_json(answer);
  });
  for (size_t i = 0; i < out.size(); ++i) EXPECT_FALSE(out[i].is_null()) << "no answer to " << lines[i];
  return out;
}

double number(const Value& answer, const char* key) { return answer.find(key)->as_double().value(); }
std::string error_of(const std::string& line, const LineSettings& settings = {}) {
  const Value answer = answers_of({line}, settings)[0];
  return answer.find("error") ? answer.find("error")->scalar : "(no error)";
}

// tests/data/eval/record.py asked lm-evaluation-harness' own back end.
TEST(LineAnswers, AreThoseOfTheHarnessOwnBackEnd) {
  std::ifstream file(test::test_data("eval/hf_answers.jsonl"));
  std::vector<std::string> lines[2];
  std::vector<Value> expected[2];
  for (std::string text; std::getline(file, text);) {
    const Value recorded = parse_json(text);
    const size_t set = recorded.find("max_length") ? 1 : 0;
    lines[set].push_back(to_json(*recorded.find("line")));
    expected[set].push_back(*recorded.find("answer"));
  }
  ASSERT_EQ(lines[0].size() + lines[1].size(), 246u);
  for (const size_t set : {0, 1}) {
    LineSettings settings;
    if (set == 1) settings.max_length = 64, settings.prefix_token_id = 2;
    const std::vector<Value> found = answers_of(lines[set], settings);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_FALSE(found[i].find("error")) << lines[set][i] << ": " << to_json(found[i]);
      if (const Value* const text = expected[set][i].find("text")) {
        EXPECT_EQ(found[i].find("text")->scalar, text->scalar) << lines[set][i];
        continue;
      }
      const double logprob = number(expected[set][i], "logprob");
      EXPECT_NEAR(number(found[i], "logprob"), logprob, 2e-4 * std::abs(logprob) + 1e-4) << lines[set][i];
      if (const Value* const greedy = expected[set][i].find("is_greedy")) {
        EXPECT_EQ(found[i].find("is_greedy")->as_bool(), greedy->as_bool()) << lines[set][i];
      }
    }
  }
}

TEST(LineAnswers, ScoreTextsAndIdsAlikeAndAddUp) {
  const auto ids = [](std::string_view text) {
    std::string out;
    for (const text::TokenId id : story_model().tokenizer->encode(text)) out = str(out, out.empty() ? "" : ",", id);
    return out;
  };
  const std::string context = ids("Tom had a"), whole = ids("Tom had a red ball");
  const std::vector<Value> found = answers_of({R"({"context": "Tom had a", "continuation": " red ball"})",
                                               str(R"({"context_ids": [)", context, R"(], "continuation_ids": [)",
                                                   std::string_view(whole).substr(context.size() + 1), "]}"),
                                               R"({"text": "Tom had a red ball"})"});
  EXPECT_EQ(to_json(found[0]), to_json(found[1]));
  for (const Value& answer : found) {
    double sum = 0;
    for (const Value& each : answer.find("token_logprobs")->items) sum += *each.as_double();
    EXPECT_NEAR(number(answer, "logprob"), sum, 1e-12);
  }
  // A rolling text begins with its prefix: BOS after BOS is scored, too, as the harness does.
  EXPECT_EQ(found[2].find("token_logprobs")->items.size(), 1 + std::ranges::count(whole, ','));
}

TEST(LineAnswers, DrawBySeedAndGreedilyOtherwise) {
  const std::string prompt = R"({"context": "Once upon", "max_gen_toks": 12)";
  const auto found = answers_of({str(prompt, "}"), str(prompt, R"(, "temperature": 0.0})"),
                                 str(prompt, R"(, "do_sample": false, "temperature": 1.5})"),
                                 str(prompt, R"(, "temperature": 1.5, "seed": 3})"),
                                 str(prompt, R"(, "do_sample": true, "temperature": 1.5, "seed": 3})"),
                                 str(prompt, R"(, "temperature": 1.5, "seed": 4})")});
  EXPECT_EQ(to_json(found[1]), to_json(found[0]));
  EXPECT_EQ(to_json(found[2]), to_json(found[0]));
  EXPECT_NE(to_json(found[3]), to_json(found[0]));
  EXPECT_EQ(to_json(found[4]), to_json(found[3]));
  EXPECT_NE(to_json(found[5]), to_json(found[3]));
  EXPECT_EQ(found[0].find("finish_reason")->scalar, "length");
  EXPECT_EQ(found[0].find("tokens")->items.size(), 12u);
}

TEST(LineAnswers, LimitAnswersAsTheSettingsSay) {
  LineSettings settings;
  settings.max_new_tokens = 5;
  const auto count = [&](const char* line) { return answers_of({line}, settings)[0].find("tokens")->items.size(); };
  EXPECT_EQ(count(R"({"context": "Once upon", "until": []})"), 5u);
  EXPECT_EQ(count(R"({"context": "Once upon", "max_new_tokens": 7})"), 7u);
  EXPECT_EQ(count(R"({"context": "Once upon", "max_tokens": 7, "max_gen_toks": 3})"), 3u);
  settings.hard_max_new_tokens = true;
  EXPECT_EQ(count(R"({"context": "Once upon", "max_new_tokens": 7})"), 5u);
  settings.max_new_tokens = 1000;  // no more than the context leaves
  settings.max_length = 20;
  EXPECT_LE(count(R"({"context": "Once upon", "until": []})"), 17u);
}

TEST(LineAnswers, TakeWhatFollowsTheReasoning) {
  const auto text = [](const char* more) {
    return answers_of({str(R"({"context": "Once upon", "max_gen_toks": 20)", more, "}")})[0].find("text")->scalar;
  };
  const std::string all = text("");
  const size_t there = all.rfind("there");
  ASSERT_NE(there, std::string::npos) << all;
  EXPECT_EQ(text(R"(, "think_end": "there")"), all.substr(there + 6));
  EXPECT_EQ(text(R"(, "think_end": "</think>")"), all.substr(all.find_first_not_of(' ')));
}

TEST(LineAnswers, RenderConversationsAndSayWhatTheModelIs) {
  LineModel model = loaded("models/stories260K-hf");
  model.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  const std::string said = R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}])";
  const auto found = answers_of(
      {str(R"({"messages": )", said, "}"), str(R"({"messages": )", said, R"(, "add_generation_prompt": false})"),
       str(R"({"messages": )", said, R"(, "add_generation_prompt": false, "continue_final_message": true})"),
       R"({"about": true, "digests": true})"},
      {}, model);
  const std::string whole = found[1].find("text")->scalar, begun = found[2].find("text")->scalar;
  EXPECT_TRUE(found[0].find("text")->scalar.starts_with(whole) && found[0].find("text")->scalar.size() > whole.size());
  EXPECT_TRUE(begun.ends_with("Well,") && whole.starts_with(begun)) << begun;
  const Value& about = found[3];
  EXPECT_EQ(about.find("max_length")->as_int(), model.model->max_positions());
  EXPECT_EQ(about.find("template_digest")->scalar, files::sha256(*model.tokenizer->chat_template()));
  EXPECT_EQ(about.find("dtype")->scalar, "fp32");
  const std::string before = about.find("weights_digest")->scalar;
  model.model->parameters().find("model.norm.weight")->shard.mul_(2);
  EXPECT_NE(answers_of({R"({"about": true, "digests": true})"}, {}, model)[0].find("weights_digest")->scalar, before);
}

TEST(LineAnswers, SayWhatIsWrongWithALineAndAnswerTheOthers) {
  const auto found = answers_of({"{", R"({"context": "Tom", "continuation": " ran"})", "[]"});
  EXPECT_TRUE(found[0].find("error") && found[2].find("error"));
  EXPECT_TRUE(found[1].find("logprob"));
  const std::string forms =
      "\n    a line has context and continuation, context_ids and continuation_ids, text, context and until, or "
      "messages";
  EXPECT_EQ(error_of(R"({"context": "a", "continuation": " b", "contineation": 1})"),
            "contineation: no such field" + forms);
  EXPECT_EQ(error_of(R"({"continuation": " b"})"), "context: is missing or not a string");
  EXPECT_EQ(error_of(R"({"context_ids": [1, "a"], "continuation_ids": [2]})"), "context_ids: \"a\" is not a token id");
  EXPECT_EQ(error_of(R"({"context_ids": [1], "continuation_ids": [512]})"),
            "line: there is no token 512; the model's vocabulary has 512");
  EXPECT_EQ(error_of(R"({"context": "Tom", "continuation": ""})"), "line: the continuation has no tokens");
  EXPECT_EQ(error_of(R"({"context": "Tom", "until": 3})"), "until: 3 is not a string");
  EXPECT_EQ(error_of(R"({"context": "Tom", "max_gen_toks": 512})"),
            "max_gen_toks: 512 new tokens leave no room for a context: the model reads at most 512\n    lower it");
  EXPECT_EQ(
      error_of(
          R"({"context": "Tom", "max_gen_toks": 5, "num_return_sequences": 2, "do_sample": true, "temperature": 1})"),
      "num_return_sequences: a line has one answer\n    give several lines");
  LineSettings settings;
  settings.max_length = 2;
  EXPECT_EQ(error_of(R"({"context": "Tom", "continuation": " ran away"})", settings),
            "line: the continuation has 5 tokens; the model reads at most 2");
}

TEST(LineAnswers, NeedNoTokenizerForIds) {
  LineModel model = story_model();
  model.tokenizer = nullptr;
  const auto found =
      answers_of({R"({"context_ids": [1], "continuation_ids": [403]})", R"({"context_ids": [1], "max_gen_toks": 3})",
                  R"({"context": "Tom", "continuation": " ran"})"},
                 {}, model);
  EXPECT_TRUE(found[0].find("logprob"));
  EXPECT_EQ(found[1].find("tokens")->items.size(), 3u);
  EXPECT_EQ(
      found[2].find("error")->scalar,
      "line: a text needs a tokenizer, and the model's folder has none\n    give context_ids and continuation_ids");
}

}  // namespace
}  // namespace easydel::elarge

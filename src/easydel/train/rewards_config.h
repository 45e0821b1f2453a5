// The entries of `trainer.rewards`: what a sampled completion is worth. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::train {

enum class RewardType : uint8_t { answer, format, length, contains, json, repetition, program, plugin, http, model };
constexpr auto choices(RewardType) {
  using enum RewardType;
  return std::array{config::Choice{answer, "answer"},   config::Choice{format, "format"},
                    config::Choice{length, "length"},   config::Choice{contains, "contains"},
                    config::Choice{json, "json"},       config::Choice{repetition, "repetition"},
                    config::Choice{program, "program"}, config::Choice{plugin, "plugin"},
                    config::Choice{http, "http"},       config::Choice{model, "model"}};
}

struct RewardEntry {
  RewardType type = RewardType::answer;
  std::optional<std::string> name;
  double weight = 1;
  std::string answer_key = "answer";
  std::optional<std::string> pattern;
  std::optional<int64_t> target;
  std::vector<std::string> words;
  int64_t ngram = 3;
  config::Many<std::string> command;
  int64_t workers = 1;
  double timeout_seconds = 60;
  Value schema;
  std::optional<std::string> model;
  std::optional<std::string> function;
  std::optional<std::string> url;
  std::vector<std::string> headers;
  int64_t batch_size = 64;
  int64_t retries = 3;

  static constexpr auto doc = "What a sampled completion is worth: a number, or nothing.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::type>(
            "answer: 1 if the completion's answer (the last \\boxed{}, what follows ####, else its last number) is "
            "that "
            "of the row. format: 1 if the pattern is found. length: the share of tokens above target, negative. "
            "contains: the share of the words that it contains. json: 1 if it is a JSON document, of the schema if "
            "there "
            "is one. repetition: the share of n-grams of tokens that were there before, negative. program: what a "
            "child process answers. plugin: what a function of a plug-in answers. http: what a service answers. model: "
            "the score of a model with a class head of one label."),
        field<&C::name>("Name in metrics and messages; null: the type."),
        field<&C::weight>("Weight in the sum of rewards; reward_weights takes precedence."),
        field<&C::answer_key>("answer: field of the row with the right answer. Rows without it are not counted."),
        field<&C::pattern>("format: regular expression (ECMAScript)."),
        field<&C::target>("length: tokens above which a completion is penalized.", at_least(1)),
        field<&C::words>("contains: texts to look for."),
        field<&C::ngram>("repetition: tokens of an n-gram.", at_least(1)),
        field<&C::command>(
            "program: the program and its arguments. It reads a line of JSON for each completion {id, "
            "prompt, completion, ids, row} and writes {id, reward} for each, in any order. What it writes "
            "as `feedback`, a text, is shown to the model by methods that learn from it."),
        field<&C::schema>("json: a JSON schema, as a map or a text. It is read as for constrained output."),
        field<&C::model>("model: the model's folder. Without it, the model of the section reward_model."),
        field<&C::function>("plugin: the name that the plug-in has given to the function."),
        field<&C::url>(
            "http: where completions are posted as {completions: [{id, prompt, completion, ids, row}]}; the answer is "
            "{rewards: [a number or null for each]}. No other host is ever asked."),
        field<&C::headers>("http: more lines of the request's header."),
        field<&C::batch_size>("http: completions in a request.", at_least(1)),
        field<&C::retries>("http: how often a request is repeated after a failure of the network or a status of 5xx.",
                           at_least(0)),
        field<&C::workers>("program: processes that share the completions.", between(1, 64)),
        field<&C::timeout_seconds>("program and http: seconds without an answer after which it has failed.", above(0)),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::train

// Episodes: the model takes turns with tools and an environment. What was sampled is never decoded and encoded again;
// the tokens of answers are inserted after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/text/output/output_parser.h"
#include "easydel/train/environment.h"
#include "easydel/train/sampler.h"
#include "easydel/train/turn_template.h"

namespace easydel::train {

struct EpisodeSettings {
  int64_t max_steps = 10;                       // turns of the model
  int64_t max_tool_calls = 5;                   // in a turn
  std::optional<int64_t> max_turn_length = {};  // tokens that the model may say in a turn
  int64_t max_prompt_length = 512;              // tokens; the end is kept
  int64_t max_completion_length = 1;            // tokens of all turns and of what is inserted between them
  int64_t max_positions = 0;                    // of the model; 0: no limit
  std::vector<std::string> tools = {};          // of model_tools.h
  text::OutputFormat format = {};               // of the model's turns
};

// The beginning of a group of episodes.
struct EpisodeStart {
  const std::vector<int32_t>& prompt;  // tokens of `messages`
  const Value& row;                    // every field
  const Value& messages;
  text::ChatOptions options = {};
  uint64_t seed = 0;
};

struct Episode {
  std::vector<int32_t> prompt;       // with what the environment said first
  Sample sample;                     // all turns, and what was inserted between them
  std::vector<double> turn_rewards;  // of each turn
  std::string answer;                // the last turn's content
};

// The results of each request, one request after the other.
using SampleTurns = std::function<std::vector<Sample>(const std::vector<SampleRequest>&, int64_t results)>;

class Episodes {
 public:
  // UserError if a tool is unknown, or the tokenizer's chat template does not only append. `environment` may be null.
  Episodes(std::shared_ptr<const text::Tokenizer> tokenizer, EpisodeSettings settings,
           std::unique_ptr<Environment> environment);

  // `each` episodes of every start, one group after the other. Draws depend on the seed, the episode's place in its
  // group and the turn alone.
  std::vector<Episode> run(const std::vector<EpisodeStart>& starts, int64_t each, const SampleTurns& sample);

  bool has_environment() const { return environment_ != nullptr; }

 private:
  struct Running;
  void begin(std::vector<Running>& all);
  std::vector<Sample> next_turns(const std::vector<Running*>& active, int64_t each, const SampleTurns& sample) const;
  void append(Running& one, const Sample& turn) const;
  int64_t room(const Running& one) const;
  int64_t room_of_turn(const Running& one) const;  // for its next turn alone
  // What our tools answer; empty: the turn calls none of them.
  std::vector<Value> tool_answers(const text::Message& turn) const;
  void go_on(Running& one, std::vector<Value> added) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  EpisodeSettings settings_;
  std::unique_ptr<Environment> environment_;
  TurnTemplate template_;
};

}  // namespace easydel::train

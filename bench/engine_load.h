// The engine on SmolLM2-135M's shape, and loads for it: what the rows of serve_engine_bench share.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/elarge/elarge.h"
#include "easydel/esurge/engine.h"
#include "measure.h"

namespace easydel::bench {

// Random weights, 32,768 positions. The folder is removed at the end.
class ServedShape {
 public:
  // `tokenizer`: a folder whose tokenizer files are copied; empty: the story model's. `set`: keys of the configuration.
  ServedShape(const std::string& tokenizer, std::vector<std::string> set);

  const std::filesystem::path& folder() const { return folder_; }
  // An engine with more keys of the section `esurge`, such as "page_size=16". pages: instead of what memory allows.
  std::shared_ptr<esurge::Engine> engine(const std::vector<std::string>& keys = {},
                                         std::optional<int64_t> pages = std::nullopt) const;
  const std::shared_ptr<const models::Model>& model() const { return model_; }

 private:
  Scratch scratch_;
  std::filesystem::path folder_;
  std::vector<std::string> set_;
  std::shared_ptr<const models::Model> model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

// Ids that differ from those of every other (seed, tokens), below the story tokenizer's 512.
std::vector<text::TokenId> prompt_ids(int64_t seed, int64_t tokens);
// Greedy, without an end before `fresh` tokens.
esurge::Request request_of(int64_t seed, int64_t tokens, int64_t fresh);

struct Load {
  double seconds = 0;
  int64_t tokens = 0;                  // generated
  std::vector<double> first, between;  // seconds to the first token; between two results of a request
  double rate() const { return double(tokens) / seconds; }
};
// `clients` at once, each of which asks again as soon as it has its answer, `rounds` times.
Load serve(esurge::Engine& engine, int64_t clients, int64_t rounds,
           const std::function<esurge::Request(int64_t client, int64_t round)>& request);
// Mean seconds of a step in which `sequences` of `context` tokens decode and nothing else runs. A step of the engine
// must take all their prompts.
double decode_step(esurge::Engine& engine, int64_t sequences, int64_t context, int64_t steps, int64_t seed);

// Prints the share of the time to the first token of prompts of 128, 512 and 2,048 tokens that neither products with
// the model's weights nor attention take, on the clock and of CPU time. Those are measured one after the other on
// random values, in turns with the prompts.
void print_rest_of_prompts(const ServedShape& shape, int64_t pairs);

// Output tokens a second of the plain loop in bf16, one prompt after the other.
double plain_loop(const std::filesystem::path& folder, int64_t prompt_tokens, int64_t fresh, int64_t rounds);

double quantile(std::vector<double> values, double share);
double median(std::vector<double> values);
// "median (least to most)"
std::string spread_of(const std::vector<double>& values, int digits);

}  // namespace easydel::bench

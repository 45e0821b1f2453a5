// Requests to score and to generate as lines of JSON, and their answers: `easydel score`, and what the harness' process
// asks for. docs/evaluation.md describes the lines.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/generation/generator.h"
#include "easydel/generation/scorer.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::elarge {

struct LineModel {
  std::shared_ptr<const models::Model> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null: the model has none, and lines give ids
  // Generates with the engine.
  std::function<std::vector<Generated>(const std::vector<generation::Request>&, const GenerateRequest&)> by_engine;
  std::function<generation::RankState(generation::RankState)> exchange = {};  // ScorerOptions::exchange
  int64_t cache_bytes = 0;   // for beginnings that are shared: ScorerOptions::memory_bytes
  double cache_share = 0.8;  // of the free memory instead, if that is 0
};

// As Session::answer_lines.
void answer_lines(const std::vector<std::string>& lines, const LineModel& model, const LineSettings& settings,
                  const OnLineAnswer& on_answer);

}  // namespace easydel::elarge

#include "easydel/probe/engine_lines.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/elarge/engine_followers.h"
#include "easydel/elarge/join_hosts.h"
#include "easydel/elarge/session_core.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/mesh/world.h"

namespace easydel::probe {
namespace {

using esurge::RequestOutput;
using esurge::StepEngine;

// What a line asks for.
struct Line {
  std::optional<esurge::Request> request;
  int64_t arrive = 0, abort = std::numeric_limits<int64_t>::max();  // steps
  esurge::RequestId id = 0;                                         // 0: not added yet
  Value answer = {};
  bool answered = false;
};

int64_t step_of(Value& fields, const char* key, int64_t otherwise) {
  const Value* const given = fields.find(key);
  if (!given) return otherwise;
  const std::optional<int64_t> step = given->as_int();
  if (!step || *step < 0) refuse(key, "is not the number of a step", "expected an integer of at least 0");
  std::erase_if(fields.entries, [&](const auto& entry) { return entry.first == key; });
  return *step;
}

Value error_line(const std::string& text) {
  Value line = Value::map();
  line.set("error", Value::text(text));
  return line;
}

void give(Line& line, Value answer) { line.answer = std::move(answer), line.answered = true; }

Value bits_of(float number) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", std::bit_cast<uint32_t>(number));
  return Value::text(text);
}

Value scores_of(const generation::TokenScores& scores) {
  Value each = Value::list(), out = Value::map();
  for (const float one : scores.each) each.items.push_back(bits_of(one));
  out.set("logprob", Value::number(scores.logprob));
  out.set("is_greedy", Value::boolean(scores.is_greedy));
  out.set("each", std::move(each));
  return out;
}

Value answer_of(const RequestOutput& output) {
  if (!output.error.empty()) return error_line(output.error);
  Value outputs = Value::list();
  for (const esurge::CompletionOutput& one : output.outputs) {
    Value ids = Value::list(), logprobs = Value::list();
    for (const esurge::TokenId id : one.token_ids) ids.items.push_back(Value::integer(id));
    for (const esurge::TokenLogprobs& each : one.logprobs) logprobs.items.push_back(bits_of(each.chosen_logprob()));
    Value own = Value::map();
    own.set("token_ids", std::move(ids));
    own.set("text", Value::text(one.text));
    own.set("finish_reason", one.finish_reason ? Value::text(std::string(name_of(*one.finish_reason))) : Value());
    own.set("logprobs", std::move(logprobs));
    outputs.items.push_back(std::move(own));
  }
  Value out = Value::map();
  if (output.vector) {
    Value vector = Value::list();
    for (const float one : *output.vector) vector.items.push_back(bits_of(one));
    out.set("vector", std::move(vector));
  } else if (output.scores)
    out.set("scores", scores_of(*output.scores));
  else
    out.set("outputs", std::move(outputs));
  out.set("cached_tokens", Value::integer(output.cached_tokens));
  out.set("preemptions", Value::integer(output.preemptions));
  out.set("prompt_tokens", Value::integer(int64_t(output.prompt_token_ids.size())));
  // What the context made shorter is never silent; most lines have no such thing.
  if (output.truncated_tokens > 0) out.set("truncated_tokens", Value::integer(output.truncated_tokens));
  if (output.capped_tokens > 0) out.set("capped_tokens", Value::integer(output.capped_tokens));
  return out;
}

void read(Line& line, const std::string& text) try {
  Value fields = parse_json(text, "line");
  if (!fields.is_map()) refuse("line", "is not a map", R"(give such as {"prompt": "Hello"})");
  line.arrive = step_of(fields, "arrive", 0);
  line.abort = step_of(fields, "abort", line.abort);
  line.request = esurge::read_request(fields);
  if (line.request->continuation || line.request->pooled) return;
  line.request->sampling.output_kind = esurge::OutputKind::final_only;
  line.request->sampling.return_token_ids = true;
  if (!line.request->sampling.logprobs) line.request->sampling.logprobs = 0;
} catch (const UserError& error) {
  give(line, error_line(error.what()));
}

void add(Line& line, StepEngine& engine) try {
  line.id =
      engine.add(std::move(*line.request), [&line](const RequestOutput& output) { give(line, answer_of(output)); });
} catch (const UserError& error) {
  give(line, error_line(error.what()));
}

}  // namespace

void engine_lines(const EngineRequest& request, const elarge::Output& out) {
  elarge::join_hosts(request.config.esurge);
  const auto session = elarge::open_session(request.config, false);
  if (mesh::read_world().rank > 0) return elarge::follow_engine(*session);
  esurge::EngineSetup setup = session->build_engine_setup();
  setup.pages = request.pages;
  StepEngine engine(std::move(setup));
  for (const auto& [name, folder] : request.adapters) engine.load_adapter(name, folder);

  std::vector<Line> lines(request.lines.size());
  for (size_t i = 0; i < lines.size(); ++i) read(lines[i], request.lines[i]);
  const auto open = [&] { return std::ranges::any_of(lines, [](const Line& line) { return !line.answered; }); };
  for (int64_t step = 0; open(); ++step) {
    for (Line& line : lines) {
      if (line.answered) continue;
      if (line.id == 0 && line.arrive <= step) add(line, engine);
      if (line.id != 0 && line.abort <= step) engine.abort(line.id);
      if (line.id == 0 && line.abort <= step && !line.answered)
        give(line, error_line("it is aborted before it arrives"));
    }
    engine.step();
  }
  std::string text;
  for (const Line& line : lines) text += to_json(line.answer) + "\n";
  out(text);
  std::fputs((to_json(metrics_document(engine.metrics()), 2) + "\n").c_str(), stderr);
}

}  // namespace easydel::probe

#include "easydel/train/episodes.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/tensor/random.h"
#include "easydel/train/model_tools.h"

namespace easydel::train {
namespace {

Value text_message(const char* role, std::string content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", Value::text(std::move(content)));
  return out;
}

// A turn as environments get it.
Value message_of(const text::Message& turn) {
  Value out = text_message("assistant", turn.content);
  if (!turn.reasoning.empty()) out.set("reasoning_content", Value::text(turn.reasoning));
  if (turn.tool_calls.empty()) return out;
  out.set("tool_calls", text::tool_calls_document(turn.tool_calls));
  return out;
}

std::string answer_of(const text::ToolCall& call, const ModelTool& tool) {
  try {
    return tool.call(parse_json(call.arguments, "arguments"));
  } catch (const UserError&) {
    return "error: the arguments are not JSON";
  }
}

uint64_t turn_seed(uint64_t episode, size_t place, size_t turn) {
  const auto bits = tensor::philox(tensor::key_of(episode, "turn"), place, turn);
  return uint64_t{bits[0]} << 32 | bits[1];
}

}  // namespace

struct Episodes::Running {
  const EpisodeStart* start = nullptr;
  size_t place = 0;  // in its group
  Value messages = {};
  Episode made = {};
  bool over = false;
};

Episodes::Episodes(std::shared_ptr<const text::Tokenizer> tokenizer, EpisodeSettings settings,
                   std::unique_ptr<Environment> environment)
    : tokenizer_(tokenizer),
      settings_(std::move(settings)),
      environment_(std::move(environment)),
      template_(std::move(tokenizer)) {
  for (const std::string& name : settings_.tools)
    if (!find_model_tool(name))
      refuse("trainer.tool_names", "'" + name + "' is not a tool that is built in",
             "built in: " + join(model_tool_names(), ", ") + "; a program of trainer.environment can have others");
  // One conversation says whether the template only appends.
  Value question = Value::list();
  question.items.push_back(text_message("user", "question"));
  if (!settings_.tools.empty()) template_.between(question, {text_message("tool", "answer")}, {}, std::nullopt);
  if (environment_) template_.between(question, {text_message("user", "answer")}, {}, std::nullopt);
}

int64_t Episodes::room(const Running& one) const {
  const auto used = int64_t(one.made.sample.ids.size());
  const int64_t most = settings_.max_completion_length - used;
  if (settings_.max_positions == 0) return most;
  return std::min(most, settings_.max_positions - int64_t(one.made.prompt.size()) - used);
}

int64_t Episodes::room_of_turn(const Running& one) const {
  return std::min(room(one), settings_.max_turn_length.value_or(INT64_MAX));
}

void Episodes::begin(std::vector<Running>& all) {
  std::vector<Environment::Beginning> asked;
  for (const Running& one : all) asked.push_back({asked.size(), one.start->row, one.start->seed});
  std::vector<EnvironmentAnswer> answers = environment_ ? environment_->begin(asked) : std::vector<EnvironmentAnswer>();
  for (size_t i = 0; i < all.size(); ++i) {
    Running& one = all[i];
    one.messages = one.start->messages;
    one.made.prompt = one.start->prompt;
    if (answers.empty()) continue;
    one.over = answers[i].done;
    if (answers[i].messages.empty()) continue;
    std::ranges::move(answers[i].messages, std::back_inserter(one.messages.items));
    one.made.prompt =
        tokenizer_->encode(template_.prompt(one.messages, one.start->options), {.add_special_tokens = false});
    if (const auto extra = int64_t(one.made.prompt.size()) - settings_.max_prompt_length; extra > 0)
      one.made.prompt.erase(one.made.prompt.begin(), one.made.prompt.begin() + static_cast<std::ptrdiff_t>(extra));
  }
}

std::vector<Sample> Episodes::next_turns(const std::vector<Running*>& active, int64_t each,
                                         const SampleTurns& sample) const {
  // The first turns of a group mostly have one prompt, which is computed once then.
  const auto shares = [&](const Running* one) {
    return one->made.turn_rewards.empty() && one->made.prompt == one->start->prompt;
  };
  std::vector<SampleRequest> requests;
  if (int64_t(active.size()) % each == 0 && std::ranges::all_of(active, shares)) {
    for (size_t i = 0; i < active.size(); i += size_t(each))
      requests.push_back({active[i]->made.prompt, active[i]->start->seed, room_of_turn(*active[i])});
    return sample(requests, each);
  }
  for (const Running* one : active) {
    SampleRequest& request = requests.emplace_back();
    request.prompt = one->made.prompt;
    request.prompt.insert(request.prompt.end(), one->made.sample.ids.begin(), one->made.sample.ids.end());
    request.seed = turn_seed(one->start->seed, one->place, one->made.turn_rewards.size());
    request.max_new_tokens = room_of_turn(*one);
  }
  return sample(requests, 1);
}

void Episodes::append(Running& one, const Sample& turn) const {
  Sample& all = one.made.sample;
  all.ids.insert(all.ids.end(), turn.ids.begin(), turn.ids.end());
  all.logps.insert(all.logps.end(), turn.logps.begin(), turn.logps.end());
  all.kept_logps.insert(all.kept_logps.end(), turn.kept_logps.begin(), turn.kept_logps.end());
  all.kept.insert(all.kept.end(), turn.kept.begin(), turn.kept.end());
  all.inserted.resize(all.ids.size(), 0);
  all.reason = turn.reason;
  one.made.turn_rewards.push_back(0);
  one.over = turn.reason == generation::StopReason::length;
}

std::vector<Value> Episodes::tool_answers(const text::Message& turn) const {
  const auto known = [&](const text::ToolCall& call) { return std::ranges::count(settings_.tools, call.name) > 0; };
  if (settings_.tools.empty() || turn.tool_calls.empty()) return {};
  if (environment_ && std::ranges::none_of(turn.tool_calls, known)) return {};
  std::vector<Value> out;
  for (const text::ToolCall& call : turn.tool_calls) {
    std::string said;
    if (int64_t(out.size()) >= settings_.max_tool_calls)
      said = str("error: only ", settings_.max_tool_calls, " calls are answered in a turn");
    else
      said = known(call) ? answer_of(call, *find_model_tool(call.name)) : "error: there is no tool '" + call.name + "'";
    Value message = text_message("tool", std::move(said));
    message.set("name", Value::text(call.name));
    if (!call.id.empty()) message.set("tool_call_id", Value::text(call.id));
    out.push_back(std::move(message));
  }
  return out;
}

void Episodes::go_on(Running& one, std::vector<Value> added) const {
  Sample& all = one.made.sample;
  const std::optional<int32_t> last = all.ids.empty() ? std::nullopt : std::optional(all.ids.back());
  const std::vector<int32_t> between = template_.between(one.messages, added, one.start->options, last);
  if (int64_t(between.size()) >= room(one)) {
    all.reason = generation::StopReason::length;
    one.over = true;
    return;
  }
  all.ids.insert(all.ids.end(), between.begin(), between.end());
  for (std::vector<float>* logps : {&all.logps, &all.kept_logps}) logps->resize(all.ids.size(), 0.0F);
  if (!all.kept.empty()) all.kept.resize(all.ids.size());
  all.inserted.resize(all.ids.size(), 1);
  one.messages.items.push_back(TurnTemplate::sampled_turn());
  std::ranges::move(added, std::back_inserter(one.messages.items));
}

std::vector<Episode> Episodes::run(const std::vector<EpisodeStart>& starts, int64_t each, const SampleTurns& sample) {
  std::vector<Running> all;
  for (const EpisodeStart& start : starts)
    for (int64_t i = 0; i < each; ++i) all.push_back({.start = &start, .place = size_t(i)});
  begin(all);
  for (Running& one : all) one.over = one.over || room(one) < 1;
  for (int64_t step = 0; step < settings_.max_steps; ++step) {
    std::vector<Running*> active;
    for (Running& one : all)
      if (!one.over) active.push_back(&one);
    if (active.empty()) break;
    const std::vector<Sample> turns = next_turns(active, each, sample);
    check(turns.size() == active.size(), turns.size(), " turns of ", active.size(), " episodes");
    std::vector<Value> messages;
    std::vector<std::pair<Running*, std::vector<Value>>> answered;
    std::vector<Running*> asking;
    for (size_t i = 0; i < turns.size(); ++i) {
      Running& one = *active[i];
      std::vector<int32_t> said = turns[i].ids;
      if (turns[i].ended() && !said.empty()) said.pop_back();
      text::OutputOptions options{.tools = one.start->options.tools};
      options.begun = text::begun_answer(template_.prompt(one.messages, one.start->options), settings_.format);
      const text::Message turn = text::parse_output(tokenizer_->decode(said, false), settings_.format, options);
      append(one, turns[i]);
      one.made.answer = turn.content;
      std::vector<Value> answers = one.over ? std::vector<Value>() : tool_answers(turn);
      if (!answers.empty()) {
        answered.emplace_back(&one, std::move(answers));
      } else if (environment_) {
        asking.push_back(&one);
        messages.push_back(message_of(turn));
      } else {
        one.over = true;
      }
    }
    std::vector<Environment::Turn> asked;
    for (size_t i = 0; i < asking.size(); ++i) asked.push_back({size_t(asking[i] - all.data()), messages[i]});
    std::vector<EnvironmentAnswer> replies =
        asked.empty() ? std::vector<EnvironmentAnswer>() : environment_->step(asked);
    for (size_t i = 0; i < replies.size(); ++i) {
      asking[i]->made.turn_rewards.back() = replies[i].reward;
      if (replies[i].done) asking[i]->over = true;
      answered.emplace_back(asking[i], std::move(replies[i].messages));
    }
    for (auto& [one, added] : answered)
      if (!one->over && step + 1 < settings_.max_steps) go_on(*one, std::move(added));
  }
  std::vector<Episode> out;
  for (Running& one : all) out.push_back(std::move(one.made));
  return out;
}

}  // namespace easydel::train

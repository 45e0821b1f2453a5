#include "easydel/elarge/joint_lines.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <cstring>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/error_document.h"

namespace easydel::elarge {
namespace {

// `text` of the first rank, on every rank.
std::string sent(const collective::Group& group, std::string text) {
  const Tensor size = at::empty({1}, at::kLong);
  size.data_ptr<int64_t>()[0] = int64_t(text.size());
  group.broadcast(size, 0);
  const Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  text.resize(size_t(bytes.numel()));
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  if (!text.empty()) group.broadcast(bytes, 0);
  std::memcpy(text.data(), bytes.const_data_ptr(), text.size());
  return text;
}

void send(const collective::Team& team, const char* key, Value value) {
  Value message = Value::map();
  message.set(key, std::move(value));
  sent(team.all(), to_json(message));
}

Value request_of(const std::vector<std::string>& lines, const LineSettings& settings) {
  Value out = Value::map(), list = Value::list();
  for (const std::string& line : lines) list.items.push_back(Value::text(line));
  out.set("lines", std::move(list));
  out.set("where", Value::text(settings.where));
  out.set("max_length", Value::integer(settings.max_length));
  out.set("batch", Value::integer(settings.batch));
  out.set("max_new_tokens", Value::integer(settings.max_new_tokens));
  out.set("hard_max_new_tokens", Value::boolean(settings.hard_max_new_tokens));
  out.set("share", Value::boolean(settings.share));
  if (settings.prefix_token_id) out.set("prefix_token_id", Value::integer(*settings.prefix_token_id));
  if (settings.chat_template) out.set("chat_template", Value::text(*settings.chat_template));
  return out;
}

void answer_request(const Value& request, const JointLines::Answer& answer) {
  const auto number = [&](const char* key) { return request.find(key)->as_int().value_or(0); };
  const auto flag = [&](const char* key) { return request.find(key)->as_bool().value_or(false); };
  std::vector<std::string> lines;
  for (const Value& line : request.find("lines")->items) lines.push_back(line.scalar);
  LineSettings settings;
  settings.where = request.find("where")->scalar;
  settings.max_length = number("max_length"), settings.batch = number("batch");
  settings.max_new_tokens = number("max_new_tokens"), settings.hard_max_new_tokens = flag("hard_max_new_tokens");
  settings.share = flag("share");
  if (const Value* const id = request.find("prefix_token_id")) settings.prefix_token_id = id->as_int();
  if (const Value* const source = request.find("chat_template")) settings.chat_template = source->scalar;
  try {
    answer(lines, settings);
  } catch (const UserError&) {
    // The first rank has the same one, and says what comes of it.
  }
}

}  // namespace

Value JointLines::run(const collective::Team& team, const std::function<Value()>& work, const Answer& answer) {
  if (team.size() == 1) return work();
  if (!team.first()) {
    for (;;) {
      const Value message = parse_json(sent(team.all(), ""), "the first rank's message");
      if (const Value* const request = message.find("request")) answer_request(*request, answer);
      if (const Value* const result = message.find("result")) return *result;
      if (const Value* const failed = message.find("failed")) rethrow(*failed);
    }
  }
  team_ = &team;
  Value result;
  try {
    result = work();
  } catch (const UserError& error) {
    team_ = nullptr;
    try {
      send(team, "failed", error_document(error));
    } catch (const UserError&) {
      // Another rank has ended, and `error` says more of it.
    }
    throw;
  }
  team_ = nullptr;
  send(team, "result", result);
  return result;
}

void JointLines::give(const std::vector<std::string>& lines, const LineSettings& settings) {
  if (team_) send(*team_, "request", request_of(lines, settings));
}

}  // namespace easydel::elarge

#include "easydel/train/shared_environment.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/error_document.h"
#include "easydel/train/grpo_config.h"

namespace easydel::train {
namespace {

Value document_of(const std::vector<EnvironmentAnswer>& answers) {
  Value out = Value::list();
  for (const EnvironmentAnswer& answer : answers) {
    Value& one = out.items.emplace_back(Value::map());
    Value messages = Value::list();
    messages.items = answer.messages;
    one.set("messages", std::move(messages));
    one.set(reward_word, Value::number(answer.reward));
    one.set("done", Value::boolean(answer.done));
  }
  return out;
}

std::vector<EnvironmentAnswer> answers_in(const Value& document) {
  std::vector<EnvironmentAnswer> out;
  for (const Value& one : document.items)
    out.push_back({one.find("messages")->items, *one.find(reward_word)->as_double(), *one.find("done")->as_bool()});
  return out;
}

}  // namespace

std::string text_of_first_rank(std::string text, const collective::Group& ranks) {
  if (ranks.alone()) return text;
  Tensor size = at::scalar_tensor(int64_t(text.size()), at::kLong);
  ranks.broadcast(size, 0);
  Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  if (ranks.rank() == 0) std::memcpy(bytes.mutable_data_ptr<uint8_t>(), text.data(), text.size());
  if (bytes.numel() > 0) ranks.broadcast(bytes, 0);
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()), size_t(bytes.numel())};
}

template <class Ask>
std::vector<EnvironmentAnswer> SharedEnvironment::shared(const Ask& ask) {
  if (ranks_.alone()) return ask();
  std::string text;
  if (ranks_.rank() == 0) try {
      text = to_json(document_of(ask()));
    } catch (const UserError& error) {
      text = to_json(error_document(error));
    }
  const Value document = parse_json(text_of_first_rank(std::move(text), ranks_), "answers of the environment");
  if (document.is_map()) rethrow(document);
  return answers_in(document);
}

std::vector<EnvironmentAnswer> SharedEnvironment::begin(std::span<const Beginning> episodes) {
  return shared([&] { return own_->begin(episodes); });
}

std::vector<EnvironmentAnswer> SharedEnvironment::step(std::span<const Turn> turns) {
  return shared([&] { return own_->step(turns); });
}

}  // namespace easydel::train

// A reward that a service computes: completions are posted to it in batches, and it answers with their numbers.
#include <algorithm>
#include <chrono>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/hub/http.h"
#include "easydel/train/rewards.h"

namespace easydel::train {
namespace {

constexpr size_t shown_bytes = 200;  // of an answer, in messages
constexpr double first_wait_seconds = 0.5, longest_wait_seconds = 30;

class Service final : public CompletionReward {
 public:
  Service(const std::string& name, const RewardEntry& entry)
      : where_("trainer.rewards: http '" + name + "'"), entry_(entry) {}

  std::vector<std::optional<double>> score(std::span<const Judged> completions) override {
    std::vector<std::optional<double>> out;
    for (size_t begin = 0; begin < completions.size(); begin += size_t(entry_.batch_size)) {
      const auto part = completions.subspan(begin, std::min(size_t(entry_.batch_size), completions.size() - begin));
      const std::vector<std::optional<double>> answers = answers_of(ask(part), part.size());
      out.insert(out.end(), answers.begin(), answers.end());
    }
    return out;
  }

 private:
  // The body of the first answer that is one.
  std::string ask(std::span<const Judged> part) const {
    Value body = Value::map(), list = Value::list();
    for (size_t i = 0; i < part.size(); ++i) list.items.push_back(document_of(part[i], int64_t(i)));
    body.set("completions", std::move(list));
    hub::Request request;
    request.method = "POST";
    request.url = *entry_.url;
    request.headers = entry_.headers;
    request.headers.emplace_back("Content-Type: application/json");
    request.body = to_json(body);
    request.to_other_hosts = false;
    request.connect_seconds = request.stall_seconds = entry_.timeout_seconds;
    double wait = first_wait_seconds;
    for (int64_t attempt = 0;; ++attempt) {
      std::string failure;
      try {
        const hub::Response response = hub::perform(request);
        if (response.status / 100 == 2) return response.body;
        if (response.status / 100 == 3)
          refuse(where_, str(*entry_.url, " redirects to ", response.header("location"), ", a host that was not named"),
                 "give the url that it redirects to");
        failure = str(*entry_.url, " answered ", response.status, ": ", response.body.substr(0, shown_bytes));
        if (response.status / 100 != 5) refuse(where_, failure);
      } catch (const hub::NetworkError& error) {
        failure = error.what();
      }
      if (attempt >= entry_.retries)
        refuse(where_, failure,
               str("it was asked ", attempt + 1, " times; see that the service runs, or raise retries"));
      log::info(where_, ": ", failure, "; asked again in ", wait, " s");
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      wait = std::min(2 * wait, longest_wait_seconds);
    }
  }

  std::vector<std::optional<double>> answers_of(const std::string& body, size_t count) const {
    Value answer;
    try {
      answer = parse_json(body, where_);
    } catch (const UserError&) {
      refuse(where_, "answered no JSON: " + body.substr(0, shown_bytes));
    }
    const Value* const list = answer.is_map() ? answer.find("rewards") : &answer;
    if (!list || !list->is_list()) refuse(where_, "answered without a list of rewards: " + body.substr(0, shown_bytes));
    if (list->items.size() != count)
      refuse(where_, str("answered ", list->items.size(), " rewards for ", count, " completions"));
    std::vector<std::optional<double>> out;
    for (const Value& one : list->items) {
      if (!one.is_null() && !one.as_double())
        refuse(where_, "answered " + to_json(one).substr(0, shown_bytes) + ", which is neither a number nor null");
      out.push_back(one.as_double());
    }
    return out;
  }

  std::string where_;
  RewardEntry entry_;
};

}  // namespace

std::unique_ptr<CompletionReward> http_reward(const std::string& name, const RewardEntry& entry) {
  return std::make_unique<Service>(name, entry);
}

}  // namespace easydel::train

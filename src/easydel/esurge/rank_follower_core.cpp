#include "easydel/esurge/rank_follower.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/esurge/adapter_files.h"
#include "easydel/esurge/message_bytes.h"
#include "easydel/esurge/model_runner.h"
#include "easydel/esurge/pooled_text.h"
#include "easydel/esurge/prefix_cache_files.h"
#include "easydel/esurge/rank_order.h"
#include "easydel/esurge/step_message.h"
#include "easydel/esurge/weight_sources.h"
#include "easydel/models/adapters.h"
#include "easydel/models/model.h"
#include "easydel/models/spread_model.h"

namespace easydel::esurge {
namespace {

class Follower {
 public:
  Follower(std::shared_ptr<const models::Model> model, const RankConnection& first, const FollowerOptions& options,
           bool whole_texts)
      : model_(std::move(model)), first_(first), options_(options), runner_(*model_, options.page_size, whole_texts) {
    runner_.compute_part(options_.place.part);
  }

  const ModelFacts& facts() const { return runner_.facts(); }
  void start(const StartMessage& start) {
    refuse_other_facts(start.facts, runner_.facts(), "this rank");
    runner_.reserve({start.budget_bytes, false});
    bounds_ = step_bounds(start);
  }
  void follow();

 private:
  // Answers with what `work` gives. What it throws is told to the first rank, and comes back.
  template <class Work>
  void answer(int64_t number, const Work& work);
  StepReply compute(StepMessage& step);
  void find_shared(StepMessage& step);

  void obey(const LoadAdapter& order);
  void obey(const AddAdapterSum& order);
  void obey(const LoadWeights& order);
  void obey(const ReceiveWeights& order);
  void obey(const DescribeWeights& order);
  void obey(const ChooseWeights& order);
  void obey(const ChangeWeights& order);
  void obey(const SaveCache& order);
  void obey(const OpenCache& order);
  void obey(const PlaceCache& order);
  PrefixCacheIdentity identity(const std::string& weights) const {
    return {weights, runner_.facts().order, runner_.facts().cache_format, options_.place};
  }

  std::shared_ptr<const models::Model> model_, new_model_;  // new_model_: that came; null: none
  const RankConnection& first_;
  const FollowerOptions& options_;
  ModelRunner runner_;
  StepBounds bounds_;
  std::unique_ptr<models::Adapters> adapters_;             // by their numbers; null: none was ever loaded
  std::map<uint64_t, std::shared_ptr<PooledText>> texts_;  // that are not done yet
  std::optional<StoredPrefixCache> cache_;                 // that was opened
  std::string told_;                                       // what an order asks for
};

std::string adapter_name(uint64_t number) { return std::to_string(number); }

template <class Work>
void Follower::answer(int64_t number, const Work& work) {
  StepReply reply;
  const auto fail = [&](const std::string& error) {
    first_.send(encode(StepReply{number, 0, error}), options_.step_seconds);
  };
  try {
    reply = work();
  } catch (const UserError& error) {
    fail(error.headline());
    throw;
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
  first_.send(encode(reply), options_.step_seconds);
}

void Follower::find_shared(StepMessage& step) {
  for (size_t i = 0; i < step.shared.of_sequences.size(); ++i) {
    SharedParts& shared = step.shared.of_sequences[i];
    RunSequence& run = step.sequences[i];
    if (run.part != options_.place.part) continue;
    if (shared.adapter != 0) {
      if (!adapters_) refuse("adapter", str("no adapter has the number ", shared.adapter));
      run.adapter = adapters_->get(adapter_name(shared.adapter), "adapter");
    }
    if (shared.text == 0) continue;
    std::shared_ptr<PooledText>& text = texts_[shared.text];
    if (!text) text = std::make_shared<PooledText>(std::move(shared.ids), std::move(shared.asked));
    run.pooled = text;
  }
  for (const uint64_t number : step.shared.gone_texts) texts_.erase(number);
  for (const uint64_t number : step.shared.gone_adapters)
    if (adapters_ && adapters_->find(adapter_name(number))) adapters_->remove(adapter_name(number));
}

// Of the message's sequences those that this rank computes, whose rows have the message's indices.
StepReply Follower::compute(StepMessage& step) {
  using Kind = SentRows::Kind;
  const auto send = [&](std::span<const ScoredRow> rows, Kind kind) {
    if (options_.sends_rows && !rows.empty()) first_.send(encode_rows(rows, kind), options_.step_seconds);
  };
  find_shared(step);
  StepReply reply{step.number, 0, {}};
  runner_.run(
      step.before, step.sequences, step.after, [&](std::span<const ScoredRow> rows) { send(rows, Kind::prompt); },
      [&](std::span<const ScoredRow> rows) {
        reply.digest = digest_of(rows);
        send(rows, Kind::draw);
      });
  const std::vector<ScoredRow> vectors = pooled_rows(step.sequences, options_.place.part);
  reply.digest += digest_of(vectors);
  send(vectors, Kind::vector);
  return reply;
}

void Follower::obey(const LoadAdapter& order) {
  if (!adapters_) adapters_ = std::make_unique<models::Adapters>(model_);
  adapters_->add(adapter_name(order.number), order.folder, [&](const auto&) {
    if (adapter_files_digest(order.folder) != order.digest)
      refuse(order.folder, "has other files than on the first rank", "give every rank the same adapter");
  });
}

void Follower::obey(const AddAdapterSum& order) {
  check(adapters_ != nullptr, "rank: a sum of no adapters");
  std::vector<models::AdapterSum::Share> shares;
  for (const auto& [number, weight] : order.shares) shares.push_back({adapter_name(number), weight});
  using Kind = models::AdapterSum::Kind;
  adapters_->add_sum(adapter_name(order.number), order.linear ? Kind::linear : Kind::cat, shares);
}

void Follower::obey(const LoadWeights& order) {
  if (!options_.load_model) refuse("model", "this rank reads no new weights");
  new_model_ = nullptr;
  auto read = options_.load_model(order.folder);
  runner_.check_fits(*read);
  new_model_ = std::move(read);
}

void Follower::obey(const ReceiveWeights& order) {
  new_model_ = nullptr;
  auto received = models::spread_from_first(*model_, parse_json(order.config, "config.json"), nullptr);
  runner_.check_fits(*received);
  new_model_ = std::move(received);
}

void Follower::obey(const DescribeWeights& order) {
  told_ = weight_sources(new_model_ ? *new_model_ : *model_, order.contents);
}

void Follower::obey(const ChooseWeights& order) {
  if (const auto chosen = std::exchange(new_model_, nullptr); order.new_ones) {
    check(chosen != nullptr, "rank: no new weights were read");
    runner_.use(*chosen);
    adapters_ = nullptr;
    model_ = chosen;
  }
}

void Follower::obey(const ChangeWeights& /*order*/) {
  if (!options_.change_weights) refuse("model", "this rank changes no weights in place");
  options_.change_weights();
}

void Follower::obey(const SaveCache& order) {
  const SavedPrefixIndex index = decode_prefix_index(order.index, facts().layout);
  for (size_t g = 0; g < index.pages.size(); ++g) {
    const auto inside = [&](int32_t page) { return page >= 0 && page < bounds_.ids[g]; };
    if (order.ids.size() != index.pages.size() || int64_t(order.ids[g].size()) != index.pages[g] ||
        !std::ranges::all_of(order.ids[g], inside))
      refuse_message("it names other pages than its prefix index has");
  }
  save_prefix_cache(prefix_cache_folder(order.folder, options_.place.rank), identity(order.weights), facts().layout,
                    index, order.ids,
                    [&](int group, int32_t page, std::span<std::byte> to) { runner_.read_page(group, page, to); });
}

void Follower::obey(const OpenCache& order) {
  StoredPrefixCache stored = read_prefix_cache(prefix_cache_folder(order.folder, options_.place.rank),
                                               identity(order.weights), facts().layout);
  if (stored.index_digest != order.index_digest)
    refuse("prefix cache", "it was not saved together with that of the first rank");
  cache_ = std::move(stored);
}

void Follower::obey(const PlaceCache& order) {
  const std::optional<StoredPrefixCache> stored = std::exchange(cache_, std::nullopt);
  if (!stored) return;
  for (const PrefixIndex::Restored& page : order.pages) {
    const auto& pages = stored->index.pages;
    if (page.group < 0 || page.group >= int(pages.size()) || page.number < 0 ||
        page.number >= pages[size_t(page.group)] || page.page < 0 || page.page >= bounds_.ids[size_t(page.group)])
      refuse_message("it names a page that there is not");
    if (stored->has(page))
      runner_.write_page(page.group, page.page, stored->page(facts().layout, page.group, page.number));
  }
}

void Follower::follow() {
  while (true) {
    const std::string bytes = first_.receive(std::nullopt);
    if (is_order(bytes)) {
      const RankOrder order = decode_order(bytes);
      try {
        answer(0, [&] {
          std::visit([&](const auto& one) { obey(one); }, order);
          return StepReply{.text = std::exchange(told_, {})};
        });
      } catch (const std::exception&) {
        // The first rank knows, and goes on without what was ordered.
      }
      continue;
    }
    StepMessage step = decode_step(bytes, bounds_);
    if (step.number == 0) return;
    answer(step.number, [&] { return compute(step); });
  }
}

}  // namespace

void follow_steps(std::shared_ptr<const models::Model> model, const RankConnection& first,
                  const FollowerOptions& options) {
  const std::string end = encode_step(0, {}, {}, {});
  std::string bytes = first.receive(std::nullopt);
  if (bytes == end) return;  // the first rank could not make its engine
  const bool whole_texts = decode_start(bytes).facts.whole_texts;
  if (!whole_texts) model->head();
  Follower follower(std::move(model), first, options, whole_texts);
  first.send(encode(StartMessage{follower.facts(), options.memory}), options.step_seconds);
  bytes = first.receive(std::nullopt);
  if (bytes == end) return;
  follower.start(decode_start(bytes));
  follower.follow();
}

}  // namespace easydel::esurge

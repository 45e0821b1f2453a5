#include "easydel/train/batch_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/train/ranks.h"

namespace easydel::train {

std::vector<std::vector<ExampleSize>> BatchSource::sizes(int64_t number) {
  std::vector<std::vector<ExampleSize>> out;
  for (const MicroBatch& micro : step(number)) {
    out.emplace_back();
    for (const data::Example* example : micro)
      out.back().push_back({int64_t(example->tokens.size()), example->labelled()});
  }
  return out;
}

std::vector<RankExamples> BatchSource::part(int64_t number, const Ranks& ranks) {
  whole_ = step(number);
  std::vector<RankExamples> out;
  for (const MicroBatch& micro : whole_) {
    RankExamples& own = out.emplace_back();
    const auto [begin, end] = ranks.rows(int64_t(micro.size()));
    own.examples.assign(micro.begin() + begin, micro.begin() + end);
    for (size_t i = 0; i < micro.size(); ++i) {
      const auto tokens = int64_t(micro[i]->tokens.size());
      if (int64_t(i) < begin) own.first_token += tokens;
      own.tokens += tokens;
    }
  }
  return out;
}

const data::Example& BatchSource::lent(size_t micro) {
  const MicroBatch& all = whole_.at(micro);
  const auto learned = std::ranges::find_if(all, [](const data::Example* e) { return e->labelled() > 0; });
  return learned == all.end() ? *all.front() : **learned;
}

std::vector<const data::Example*> BatchSource::take(int64_t, int64_t) {
  throw Bug("examples are taken from a source without an order");
}
int64_t BatchSource::examples_in_epoch() const { throw Bug("a source without an order has no epochs"); }

DatasetSource::DatasetSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts,
                             int64_t max_steps_in_epoch, int64_t steps_ahead)
    : dataset_(std::move(dataset)),
      update_(update),
      parts_(parts),
      steps_((dataset_->size() + update - 1) / update),
      steps_ahead_(steps_ahead) {
  if (max_steps_in_epoch > 0) steps_ = std::min(steps_, max_steps_in_epoch);
}

std::vector<const data::Example*> DatasetSource::take(int64_t begin, int64_t count) {
  taken_.clear();
  for (int64_t i = begin; i < begin + count; ++i)
    taken_.push_back(dataset_->at(dataset_->index(i / dataset_->size(), i % dataset_->size())));
  std::vector<const data::Example*> out;
  for (const data::Example& example : taken_) out.push_back(&example);
  return out;
}

std::vector<std::vector<int64_t>> DatasetSource::indices(int64_t step) {
  const int64_t begin = step % steps_ * update_, end = std::min(begin + update_, dataset_->size());
  const int64_t part = update_ / parts_;
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = begin; i < end; i += part) {
    std::vector<int64_t>& micro = out.emplace_back();
    for (int64_t k = i; k < std::min(i + part, end); ++k) micro.push_back(dataset_->index(step / steps_, k));
  }
  return out;
}

namespace {

std::span<const int64_t> part_of(const std::vector<int64_t>& micro, const Ranks& ranks) {
  const auto [begin, end] = ranks.rows(int64_t(micro.size()));
  return std::span(micro).subspan(size_t(begin), size_t(end - begin));
}

}  // namespace

void DatasetSource::announce(int64_t step, const Ranks* ranks) {
  if (!dataset_->is_stream()) return;
  bool anew = step != expected_;
  if (anew) announced_ = step;
  for (expected_ = step + 1; announced_ <= step + steps_ahead_; ++announced_)
    for (const std::vector<int64_t>& micro : indices(announced_))
      dataset_->announce(ranks ? part_of(micro, *ranks) : micro, std::exchange(anew, false));
}

namespace {

[[noreturn]] void refuse_empty(int64_t step) {
  refuse(str("step ", step + 1), "none of its rows has an example",
         "raise total_batch_size, or leave mixture.enable_caching out, so that such rows are left out beforehand");
}

}  // namespace

std::vector<MicroBatch> DatasetSource::step(int64_t step) {
  announce(step, nullptr);
  const auto all = indices(step);
  of_step_.clear();
  of_step_.reserve(size_t(update_));
  std::vector<MicroBatch> out;
  for (const std::vector<int64_t>& micro : all) {
    MicroBatch& made = out.emplace_back();
    for (const int64_t index : micro)
      if (std::optional<data::Example> example = dataset_->find(index))
        made.push_back(&of_step_.emplace_back(std::move(*example)));
    if (made.empty()) out.pop_back();
  }
  if (out.empty()) refuse_empty(step);
  return out;
}

std::vector<RankExamples> DatasetSource::part(int64_t step, const Ranks& ranks) {
  if (ranks.parts() == 1) return BatchSource::part(step, ranks);
  announce(step, &ranks);
  lenders_ = indices(step);
  of_step_.clear();
  of_step_.reserve(size_t(update_));
  if (dataset_->is_stream()) return part_of_stream(step, ranks);
  std::vector<RankExamples> out;
  for (const std::vector<int64_t>& micro : lenders_) {
    RankExamples& own = out.emplace_back();
    const std::span<const int64_t> mine = part_of(micro, ranks);
    for (const int64_t& index : micro) {
      const int64_t tokens = dataset_->tokens_of(index);
      if (&index < mine.data()) own.first_token += tokens;
      own.tokens += tokens;
    }
    for (const int64_t index : mine) own.examples.push_back(&of_step_.emplace_back(dataset_->at(index)));
  }
  return out;
}

// Which rows have an example, and how many tokens, is known to the rank that prepared them.
std::vector<RankExamples> DatasetSource::part_of_stream(int64_t step, const Ranks& ranks) {
  std::vector<RankExamples> all;
  std::vector<double> own{0};  // bad rows; of each micro-batch examples and tokens
  ranks.together([&] {
    for (const std::vector<int64_t>& micro : lenders_) {
      RankExamples& made = all.emplace_back();
      int64_t tokens = 0;
      for (const int64_t index : part_of(micro, ranks)) {
        std::optional<data::Example> example = dataset_->find(index);
        if (!example) continue;
        tokens += int64_t(example->tokens.size());
        made.examples.push_back(&of_step_.emplace_back(std::move(*example)));
      }
      own.insert(own.end(), {double(made.examples.size()), double(tokens)});
    }
  });
  own[0] = double(dataset_->report().skipped);
  const std::vector<std::vector<double>> said = ranks.of_parts(own);
  int64_t skipped = 0;
  for (const std::vector<double>& one : said) skipped += int64_t(one[0]);
  ranks.together([&] { dataset_->check_skipped(skipped); });  // the same on all of them
  std::vector<RankExamples> out;
  std::vector<std::vector<int64_t>> lenders;
  for (size_t m = 0; m < all.size(); ++m) {
    double examples = 0;
    for (size_t part = 0; part < said.size(); ++part) {
      examples += said[part][2 * m + 1];
      const auto tokens = int64_t(said[part][2 * m + 2]);
      if (int64_t(part) < ranks.part()) all[m].first_token += tokens;
      all[m].tokens += tokens;
    }
    if (examples == 0) continue;
    out.push_back(std::move(all[m]));
    lenders.push_back(std::move(lenders_[m]));
  }
  if (out.empty()) ranks.together([&] { refuse_empty(step); });
  lenders_ = std::move(lenders);
  return out;
}

const data::Example& DatasetSource::lent(size_t micro) {
  if (lenders_.empty()) return BatchSource::lent(micro);
  const std::vector<int64_t>& all = lenders_.at(micro);
  if (!dataset_->is_stream()) {
    const auto learned = std::ranges::find_if(all, [&](int64_t index) { return dataset_->labels_of(index) > 0; });
    return lent_ = dataset_->at(learned == all.end() ? all.front() : *learned);
  }
  lent_ = {};
  for (const int64_t index : all)
    if (std::optional<data::Example> example = dataset_->look_at(index)) {
      const bool learns = example->labelled() > 0;
      if (learns || lent_.tokens.empty()) lent_ = std::move(*example);
      if (learns) break;
    }
  return lent_;
}

std::vector<std::vector<ExampleSize>> DatasetSource::sizes(int64_t step) {
  if (dataset_->is_stream()) return BatchSource::sizes(step);
  std::vector<std::vector<ExampleSize>> out;
  for (const std::vector<int64_t>& micro : indices(step)) {
    out.emplace_back();
    for (const int64_t index : micro) out.back().push_back({dataset_->tokens_of(index), dataset_->labels_of(index)});
  }
  return out;
}

Value DatasetSource::cursor(int64_t step) const {
  Value out = Value::map();
  out.set("epoch", Value::integer(step / steps_));
  out.set("index", Value::integer(step % steps_ * update_));
  return out;
}

}  // namespace easydel::train

#include "easydel/data/packed_stream.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::data {

PackedStream::PackedStream(std::shared_ptr<ExampleStream> stream, const DatasetOptions& options)
    : stream_(std::move(stream)),
      packing_(options.packing),
      row_length_(options.row_length),
      window_documents_(options.documents_in_window()),
      scheduled_update_(options.packs_by_schedule() ? options.mixture.schedule.examples_per_update : 0),
      documents_(stream_->order()),
      order_(scheduled_update_ > 0 ? PackedOrder::endless(options.shuffled, options.seed)
                                   : PackedOrder((documents_.size() + window_documents_ - 1) / window_documents_,
                                                 options.shuffled, options.seed)) {}

PackedStream::~PackedStream() { stop(); }

void PackedStream::stop() {
  if (!ahead_.valid()) return;
  stops_ = true;
  ahead_.wait();
  ahead_ = {};
  stops_ = false;
}

// Null: it was stopped.
std::unique_ptr<PackedStream::Window> PackedStream::made(int64_t number, int64_t rows, std::vector<int64_t> drawn) {
  constexpr size_t rows_together = 256;  // so that no more than twice as many are kept as texts
  auto out = std::make_unique<Window>();
  out->number = number;
  std::vector<int64_t> asked;
  if (scheduled_update_ > 0) {
    asked = documents_.block(number, rows / scheduled_update_, drawn);
    out->drawn = std::move(drawn);
  } else {
    const int64_t begin = number * window_documents_;
    for (int64_t i = begin; i < std::min(begin + window_documents_, documents_.size()); ++i)
      asked.push_back(documents_.at(0, i));
  }
  const auto announce = [&](size_t first) {
    const size_t begin = std::min(first, asked.size()), end = std::min(first + rows_together, asked.size());
    stream_->announce(std::span(asked).subspan(begin, end - begin), first == 0);
  };
  announce(0);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (stops_) return nullptr;
    if (i % rows_together == 0) announce(i + rows_together);
    if (const std::optional<Example> example = stream_->find(asked[i])) out->documents.add(*example);
  }
  out->documents.finish();
  out->report = stream_->report();
  out->rows.emplace(packing_, row_length_);
  std::vector<int64_t> all(size_t(out->documents.size()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  out->rows->add(out->documents, all, out->report.packing);
  return out;
}

int64_t PackedStream::next_window(const PackedPlace& place) const {
  if (place.window + 1 < windows()) return order_.window(place.epoch, place.window + 1);
  return order_.window(place.epoch + 1, 0);
}

const PackedStream::Window& PackedStream::window_at(const PackedPlace& place) {
  const int64_t number = order_.window(place.epoch, place.window);
  if (!current_ || current_->number != number) {
    if (ahead_number_ != number) stop();
    current_.reset();  // its memory is for the next one
    current_ = ahead_.valid() ? ahead_.get() : made(number, place.rows - place.row, place.drawn);
    ahead_number_ = -1;
    const PackingReport packing = std::exchange(report_, current_->report).packing;
    report_.packing.add(packing);
  }
  const int64_t next = next_window(place);
  if (next != number && !ahead_.valid()) {
    ahead_number_ = next;
    // With a schedule, windows come in their order, so the rows before the next one are known.
    const int64_t rows = place.rows - place.row + current_->rows->size();
    ahead_ = std::async(std::launch::async, [=, this, drawn = current_->drawn] { return made(next, rows, drawn); });
  }
  return *current_;
}

std::vector<Example> PackedStream::update(PackedPlace& place, int64_t count, int64_t max_updates) {
  std::vector<Example> out;
  const auto end_epoch = [&] { place = {.epoch = place.epoch + 1}; };
  if (max_updates > 0 && place.rows >= max_updates * count) end_epoch();
  while (int64_t(out.size()) < count) {
    if (place.window == windows()) {
      if (!out.empty()) break;
      if (place.rows == 0)
        refuse("mixture.informs", "no row of an epoch has an example, so there is nothing to train on",
               "`easydel data check` says what is wrong with each row");
      end_epoch();
      continue;
    }
    const Window& window = window_at(place);
    if (place.row == window.rows->size()) {
      ++place.window, place.row = 0, place.drawn = window.drawn;
      continue;
    }
    const int64_t row = order_.row(place.epoch, window.number, window.rows->size(), place.row++);
    out.push_back(window.rows->at(window.documents, row));
    ++place.rows;
  }
  return out;
}

}  // namespace easydel::data

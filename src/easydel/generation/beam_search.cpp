// Beam search over the cache: Beams decides which sequences continue, and their slots follow.
#include <algorithm>
#include <optional>
#include <utility>

#include "easydel/generation/beams.h"
#include "easydel/generation/search.h"
#include "easydel/generation/stopping.h"

namespace easydel::generation {
namespace {

class BeamSearch final : public Search {
 public:
  BeamSearch(const Request& request, size_t first, int64_t max_length, const Surroundings& around)
      : Search(request, first, max_length, size_t(request.config.num_beams), around),
        beams_(request.config, request.prompt, max_length) {}

  void cancel() override { finish(StopReason::cancelled); }

 private:
  void choose(std::span<const std::span<float>> rows, nn::Cache& cache) override {
    const GenerationConfig& config = request_.config;
    for (size_t i = 0; i < rows.size(); ++i) {
      log_softmax(rows[i]);
      apply(chain_, {beams_.running()[i].tokens, request_.prompt.size()}, rows[i]);
    }
    if (config.output_logits) logit_rows_.push_back(std::move(logits_));
    if (config.output_scores) {
      score_rows_.emplace_back();
      for (const auto& row : rows) score_rows_.back().emplace_back(row.begin(), row.end());
    }
    late_ = out_of_time();
    beams_.advance(rows, [&](std::span<const TokenId> tokens) { return late_ || has_stop(tokens); });
    if (beams_.done()) return finish(StopReason::end);
    place(cache);
  }

  // Every running beam takes the sequence of the beam that it continues. If two beams continue the same one, the second
  // gets a copy in a sequence that no beam continues.
  void place(nn::Cache& cache) {
    const std::vector<Beam>& running = beams_.running();
    for (size_t base = 0; base < sequences_.size(); base += width_) {
      std::vector<std::optional<size_t>> sequence_of(running.size());
      std::vector<bool> taken(width_, false);
      for (size_t j = 0; j < running.size(); ++j) {
        const auto parent = size_t(running[j].parents.back());
        if (!taken[parent]) sequence_of[j] = parent, taken[parent] = true;
      }
      size_t free = 0;
      for (size_t j = 0; j < running.size(); ++j) {
        if (sequence_of[j]) continue;
        while (taken[free]) ++free;
        taken[free] = true, sequence_of[j] = free;
        copy(sequences_[base + size_t(running[j].parents.back())], sequences_[base + free], cache);
      }
      std::vector<Sequence> sequences(width_);
      for (size_t j = 0; j < running.size(); ++j) {
        sequences[j] = std::move(sequences_[base + *sequence_of[j]]);
        sequences[j].tokens.push_back(running[j].tokens.back());
      }
      for (size_t j = running.size(), sequence = 0; j < width_; ++j, ++sequence) {
        while (taken[sequence]) ++sequence;
        sequences[j].slot = sequences_[base + sequence].slot;
        cache.truncate(sequences[j].slot, 0);
      }
      std::ranges::move(sequences, sequences_.begin() + static_cast<std::ptrdiff_t>(base));
    }
  }

  static void copy(const Sequence& from, Sequence& to, nn::Cache& cache) {
    cache.copy(from.slot, to.slot);
    to.tokens = from.tokens, to.prompt = from.prompt, to.seen = from.seen, to.known = from.known;
    to.adapter = from.adapter;
  }

  // The text of the tokens after the prompt.
  std::string text_of(std::span<const TokenId> tokens) const {
    if (!around_.tokenizer) return "";
    return text::decode_continuation(*around_.tokenizer, request_.prompt, tokens.subspan(request_.prompt.size()));
  }
  bool has_stop(std::span<const TokenId> tokens) const {
    if (request_.config.stop_strings.empty()) return false;
    StopStrings stops({request_.config.stop_strings.begin(), request_.config.stop_strings.end()});
    return stops.would_stop(text_of(tokens));
  }

  void finish(StopReason reason) {
    done_ = true;
    for (Beam& beam : beams_.best(size_t(request_.config.num_return_sequences))) {
      Result& result = results_.emplace_back();
      StopStrings stops({request_.config.stop_strings.begin(), request_.config.stop_strings.end()});
      result.score = beam.score;
      for (size_t step = 0; step < beam.parents.size(); ++step) {
        const auto parent = size_t(beam.parents[step]);
        if (!score_rows_.empty()) result.scores.push_back(score_rows_[step][parent]);
        if (!logit_rows_.empty()) result.logits.push_back(logit_rows_[step][parent]);
      }
      if (beam.tokens.size() > request_.prompt.size() && is_end(beam.tokens.back())) {
        result.end = beam.tokens.back();
        beam.tokens.pop_back();
      }
      result.beam_indices = std::move(beam.parents);
      result.text = stops.push(text_of(beam.tokens));
      result.text += stops.finish();
      result.tokens.assign(beam.tokens.begin() + static_cast<std::ptrdiff_t>(request_.prompt.size()),
                           beam.tokens.end());
      const bool longest = int64_t(beam.tokens.size()) >= max_length_;
      result.reason = reason != StopReason::end ? reason
                      : result.end              ? StopReason::end
                      : stops.stopped()         ? StopReason::stop_string
                      : longest                 ? StopReason::length
                                                : StopReason::max_time;
      if (around_.on_text) around_.on_text(first_ + results_.size() - 1, beam.tokens.back(), result.text);
    }
    // If fewer results than requested were found, the others are empty.
    results_.resize(size_t(request_.config.num_return_sequences));
  }

  Beams beams_;
  std::vector<std::vector<std::vector<float>>> score_rows_, logit_rows_;  // [step][beam][vocabulary]
  bool late_ = false;
};

}  // namespace

std::unique_ptr<Search> make_beam_search(const Request& request, size_t first, int64_t max_length,
                                         const Surroundings& around) {
  return std::make_unique<BeamSearch>(request, first, max_length, around);
}

}  // namespace easydel::generation

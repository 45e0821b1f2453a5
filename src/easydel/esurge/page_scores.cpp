#include "easydel/esurge/page_scores.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::esurge {

int64_t PageScores::count(int64_t index) const {
  return size_t(index) < tokens_.size() ? int64_t(tokens_[size_t(index)].count) : -1;
}

TokenLogprobs PageScores::get(int64_t index, TokenId token, int64_t count) const {
  check(count >= 0 && count <= this->count(index), "page scores: ", count, " entries of token ", index, ", which has ",
        this->count(index));
  const Token& kept = tokens_[size_t(index)];
  const auto entries = std::span(entries_).subspan(kept.begin, size_t(std::min<int64_t>(count, kept.entries)));
  TokenLogprobs out;
  out.chosen = entries.size();
  for (const Entry& entry : entries) {
    if (entry.id == token) out.chosen = out.token_ids.size();
    out.token_ids.push_back(entry.id), out.logprobs.push_back(entry.logprob);
  }
  if (out.chosen == entries.size()) out.token_ids.push_back(token), out.logprobs.push_back(kept.logprob);
  return out;
}

std::optional<PageScores> PageScores::with(int64_t first, std::span<const TokenLogprobs> rows, int64_t count) const {
  const auto is_new = [&](int64_t i) { return i >= first && i < first + std::ssize(rows) && this->count(i) < count; };
  const int64_t size = std::max(std::ssize(tokens_), first + std::ssize(rows));
  bool any = false;
  for (int64_t i = first; i < size && !any; ++i) any = is_new(i);
  if (!any) return std::nullopt;
  PageScores out;
  out.tokens_.reserve(size_t(size));
  out.entries_.reserve(entries_.size() + rows.size() * size_t(count));
  for (int64_t i = 0; i < size; ++i) {
    Token& to = out.tokens_.emplace_back();
    if (is_new(i)) {
      const TokenLogprobs& row = rows[size_t(i - first)];
      const auto most = std::min<size_t>(row.token_ids.size(), size_t(count));
      to = {uint32_t(out.entries_.size()), int16_t(count), int16_t(most), row.chosen_logprob()};
      for (size_t e = 0; e < most; ++e) out.entries_.push_back({row.token_ids[e], row.logprobs[e]});
    } else if (this->count(i) >= 0) {
      to = tokens_[size_t(i)];
      const auto from = std::span(entries_).subspan(to.begin, size_t(to.entries));
      to.begin = uint32_t(out.entries_.size());
      out.entries_.insert(out.entries_.end(), from.begin(), from.end());
    }
  }
  out.entries_.shrink_to_fit();
  return out;
}

}  // namespace easydel::esurge

// Updates origins when characters are replaced, added and removed.
#include "easydel/text/tokenizers/normalized_text.h"

#include "easydel/base/error.h"

namespace easydel::text {

NormalizedText::NormalizedText(std::string_view text, bool tracked, size_t begin)
    : bytes_(text),
      original_begin_(uint32_t(begin)),
      tracked_(tracked),
      max_bytes_((size_t{1} << 20) + 256 * text.size()) {
  if (!tracked_) return;
  origins_.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8_length(static_cast<unsigned char>(text[at]));
    Span span{uint32_t(begin + at), uint32_t(begin + at + length)};
    origins_.insert(origins_.end(), length, span);
    at += length;
  }
}

NormalizedText NormalizedText::slice(size_t begin, size_t end) const {
  NormalizedText out("", tracked_, original_begin_);
  out.max_bytes_ = max_bytes_;
  out.bytes_ = bytes_.substr(begin, end - begin);
  if (tracked_) {
    out.origins_.assign(origins_.begin() + begin, origins_.begin() + end);
    if (begin < end) out.original_begin_ = origins_[begin].begin;
  }
  return out;
}

void NormalizedText::transform(std::span<const Changed> characters) {
  std::string bytes;
  bytes.reserve(bytes_.size() + 8);
  if (!tracked_) {
    for (const Changed& item : characters) append_utf8(bytes, item.character);
    bytes_ = std::move(bytes);
    return;
  }
  std::vector<Span> origins;
  origins.reserve(bytes_.size() + 8);
  size_t at = 0;
  auto skip = [&] {
    if (at < bytes_.size()) at += utf8_length(static_cast<unsigned char>(bytes_[at]));
  };
  for (const Changed& item : characters) {
    Span origin{original_begin_, original_begin_};
    if (item.change > 0) {
      if (at > 0) origin = origins_[at - 1];
    } else {
      if (at < origins_.size()) origin = origins_[at];
      for (int i = 0; i <= -item.change; ++i) skip();
    }
    append_utf8(bytes, item.character);
    origins.resize(bytes.size(), origin);
  }
  bytes_ = std::move(bytes);
  origins_ = std::move(origins);
}

void NormalizedText::rewrite(std::string bytes, std::span<const Span> from) {
  if (tracked_) {
    std::vector<Span> origins;
    origins.reserve(bytes.size());
    for (const Span& range : from) {
      uint32_t begin = range.begin < origins_.size() ? origins_[range.begin].begin
                       : origins_.empty()            ? original_begin_
                                                     : origins_.back().end;
      origins.push_back({begin, range.end > range.begin ? origins_[range.end - 1].end : begin});
    }
    origins_ = std::move(origins);
  }
  bytes_ = std::move(bytes);
}

void NormalizedText::replace_range(size_t begin, size_t end, std::string_view content) {
  Span range{uint32_t(begin), uint32_t(end)};
  replace_ranges({&range, 1}, content);
}

void NormalizedText::replace_ranges(std::span<const Span> ranges, std::string_view content) {
  if (ranges.empty()) return;
  size_t kept = bytes_.size();
  for (const Span& range : ranges) kept -= range.end - range.begin;
  if (kept + ranges.size() * content.size() > max_bytes_)
    refuse("tokenizer.json", str("its normalizer makes more than ", max_bytes_, " bytes of this text"),
           "a Replace in it makes texts longer and longer; fetch the tokenizer again");
  std::string bytes;
  std::vector<Span> origins;
  bytes.reserve(bytes_.size() + ranges.size() * content.size());
  size_t last = 0;
  for (const Span& range : ranges) {
    bytes.append(bytes_, last, range.begin - last).append(content);
    if (tracked_) {
      origins.insert(origins.end(), origins_.begin() + last, origins_.begin() + range.begin);
      origins.insert(origins.end(), content.size(),
                     range.end ? origins_[range.end - 1] : Span{original_begin_, original_begin_});
    }
    last = range.end;
  }
  bytes.append(bytes_, last);
  if (tracked_) origins.insert(origins.end(), origins_.begin() + last, origins_.end());
  bytes_ = std::move(bytes);
  origins_ = std::move(origins);
}

void NormalizedText::prepend(std::string_view content) {
  if (bytes_.empty()) return;
  bytes_.insert(0, content);
  if (tracked_) origins_.insert(origins_.begin(), content.size(), Span(origins_.front()));
}

void NormalizedText::keep(size_t begin, size_t end) {
  bytes_ = bytes_.substr(begin, end - begin);
  if (tracked_) origins_ = std::vector<Span>(origins_.begin() + begin, origins_.begin() + end);
}

}  // namespace easydel::text

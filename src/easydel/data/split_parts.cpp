#include "easydel/data/split_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  SplitPart part() {
    SplitPart out;
    const size_t bracket = std::min(text_.find('['), text_.find('('));
    out.split = std::string(text_.substr(0, bracket));
    const bool is_word = std::ranges::all_of(
        out.split, [](char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '-' || c == '.'; });
    if (out.split.empty() || !is_word) wrong();
    at_ = std::min(bracket, text_.size());
    if (take('[')) {
      out.from = boundary();
      if (!take(':')) wrong();
      out.to = boundary();
      if (!take(']')) wrong();
      check_units(out);
    }
    if (take('(')) {
      const size_t close = text_.find(')', at_);
      if (close == std::string_view::npos) wrong();
      const std::string_view word = text_.substr(at_, close - at_);
      if (word == "pct1_dropremainder")
        out.rounding = SplitPart::Rounding::dropremainder;
      else if (word != "closest")
        wrong();
      at_ = close + 1;
    }
    if (at_ != text_.size()) wrong();
    return out;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<SplitPart::Boundary> boundary() {
    std::string digits;
    while (at_ < text_.size() && (std::isdigit(uint8_t(text_[at_])) || text_[at_] == '-' || text_[at_] == '_')) {
      if (text_[at_] != '_') digits += text_[at_];
      ++at_;
    }
    if (digits.empty()) return std::nullopt;
    SplitPart::Boundary out;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.value);
    if (error != std::errc() || end != digits.data() + digits.size()) wrong();
    out.percent = take('%');
    if (out.percent && std::abs(out.value) > 100)
      refuse(where_, str("'", text_, "': a slice goes from -100% to 100%"), "for example train[:10%]");
    return out;
  }

  void check_units(const SplitPart& part) const {
    if (part.from && part.to && part.from->percent != part.to->percent)
      refuse(where_, str("'", text_, "' mixes rows and percents"), "give both boundaries in one unit");
  }

  [[noreturn]] void wrong() const {
    refuse(where_, str("'", text_, "' is neither a split nor a slice of one"),
           "for example train, train[:10%], train[100:200]+validation");
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

int64_t rows_of(const SplitPart::Boundary& boundary, SplitPart::Rounding rounding, int64_t rows) {
  int64_t out = boundary.value;
  if (boundary.percent && rounding == SplitPart::Rounding::closest)
    out = int64_t(std::nearbyint(double(boundary.value) * double(rows) / 100));  // to even, as Python's round
  else if (boundary.percent)
    out = boundary.value * (rows / 100);
  if (out < 0) out = std::max<int64_t>(rows + out, 0);
  return std::min(out, rows);
}

}  // namespace

bool SplitPart::needs_count() const {
  const auto depends = [](const std::optional<Boundary>& one) { return one && (one->percent || one->value < 0); };
  return depends(from) || depends(to);
}

SplitPart::Range SplitPart::range(int64_t rows) const {
  if (!needs_count()) return {from ? from->value : 0, to ? to->value : INT64_MAX};
  return {from ? rows_of(*from, rounding, rows) : 0, to ? rows_of(*to, rounding, rows) : rows};
}

std::vector<SplitPart> split_parts(std::string_view split, const std::string& where) {
  std::vector<SplitPart> out;
  std::string plain;
  for (const char c : split)
    if (c != ' ') plain += c;
  for (size_t at = 0; at <= plain.size();) {
    const size_t plus = std::min(plain.find('+', at), plain.size());
    out.push_back(Parser(std::string_view(plain).substr(at, plus - at), where).part());
    at = plus + 1;
  }
  return out;
}

}  // namespace easydel::data

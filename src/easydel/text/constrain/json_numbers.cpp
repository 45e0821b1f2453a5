#include "easydel/text/constrain/json_numbers.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace easydel::text::constrain {
namespace {

std::strong_ordering compare_size(const Decimal& a, const Decimal& b) {
  if (a.digits.empty() || b.digits.empty()) return !a.digits.empty() <=> !b.digits.empty();
  if (a.exponent != b.exponent) return a.exponent <=> b.exponent;
  return a.digits.compare(b.digits) <=> 0;
}

// How what was read so far compares with a bound: less, equal, greater, and how much of the bound was compared.
struct Compared {
  int8_t order = 0;  // -1, 0, 1
  int16_t at = 0;
  auto operator<=>(const Compared&) const = default;
};

// The size of a bound, to be compared with digits as they come.
class Bound {
 public:
  explicit Bound(const Decimal& value) : digits_(value.digits), exponent_(value.exponent) {}

  // Digits before the point of a number without an exponent; the first is not 0.
  Compared whole_digit(Compared c, int digit) const {
    if (c.at >= whole()) return {1, int16_t(whole() + 1)};
    const int own = digit_at(c.at);
    return {c.order ? c.order : order_of(digit, own), int16_t(c.at + 1)};
  }
  Compared end_of_whole(Compared c) const { return {c.at < whole() ? int8_t{-1} : c.order, 0}; }
  // Digits after it.
  Compared fraction_digit(Compared c, int digit) const {
    if (c.order) return {c.order, 0};
    const int64_t place = whole_of_exponent() + c.at;
    const int order = order_of(digit, digit_at(place));
    const bool over = place + 1 >= int64_t(digits_.size());
    return {int8_t(order), int16_t(order ? 0 : over ? all : c.at + 1)};
  }
  int8_t end_of_fraction(Compared c) const {
    if (c.order) return c.order;
    const bool over = c.at == all || whole_of_exponent() + c.at >= int64_t(digits_.size());
    return over ? 0 : -1;
  }

  // Digits of a number d.ddd, whatever its exponent, against the bound's own digits.
  Compared mantissa_digit(Compared c, int digit) const {
    if (c.order) return {c.order, 0};
    const int order = order_of(digit, digit_at(c.at));
    const bool over = c.at + 1 >= int64_t(digits_.size());
    return {int8_t(order), int16_t(order ? 0 : over ? all : c.at + 1)};
  }
  int8_t end_of_mantissa(Compared c) const {
    if (c.order) return c.order;
    return c.at == all || c.at >= int64_t(digits_.size()) ? 0 : -1;
  }
  // The exponent of the bound written as d.ddd.
  int64_t exponent() const { return exponent_ - 1; }
  bool zero() const { return digits_.empty(); }

 private:
  static constexpr int16_t all = INT16_MAX;  // every digit was compared, only zeros are left
  static int8_t order_of(int a, int b) { return a < b ? int8_t{-1} : a > b ? int8_t{1} : int8_t{0}; }
  int64_t whole_of_exponent() const { return digits_.empty() ? 0 : exponent_; }
  int16_t whole() const { return int16_t(std::clamp<int64_t>(whole_of_exponent(), 0, max_digits + 1)); }
  int digit_at(int64_t place) const {
    return place >= 0 && place < int64_t(digits_.size()) ? digits_[size_t(place)] - '0' : 0;
  }
  std::string digits_;
  int64_t exponent_ = 0;
};

enum class Part : uint8_t { begin, minus, zero, whole, point, fraction, e, sign, exponent };

// Everything that decides how a number may go on.
struct NumberState {
  Part part = Part::begin;
  bool negative = false, scientific = false, below_one = false;  // below_one: the exponent is negative
  bool long_mantissa = false;  // with an exponent, after more than one digit before the point, or after 0
  int16_t digits = 0;
  int16_t exponent = 0;  // digits of it
  std::array<Compared, 2> plain = {}, mantissa = {};
  std::array<Compared, 2> power = {};  // the exponent against the bounds' exponents
  // Against the largest number: the mantissa, if one digit is before the point, and the exponent.
  Compared size = {}, exponent_size = {};
  int64_t rest = 0;  // modulo multiple_of
  auto operator<=>(const NumberState&) const = default;
};

class NumberMachine {
 public:
  NumberMachine(Grammar& grammar, const NumberLimits& limits) : grammar_(grammar), limits_(limits) {
    for (const auto* value : {&limits.min, &limits.max}) {
      bounds_.push_back(value->has_value() ? std::optional<Bound>(**value) : std::nullopt);
      powers_.push_back(value->has_value() ? std::optional<Bound>(whole_number(bounds_.back()->exponent()))
                                           : std::nullopt);
    }
    max_digits_ = limits.multiple_of ? 18 : max_digits;
  }

  ExprId run() {
    node_of({});
    nodes_ = 2;
    std::vector<GraphEdge> edges;
    for (size_t i = 0; i < todo_.size(); ++i) {
      const NumberState state = todo_[i];
      const uint32_t from = ids_[state];
      // Bytes that lead to one state are one edge.
      std::map<uint32_t, CharSet> targets;
      for (const char c : std::string_view("-+.eE0123456789"))
        if (const auto next = read(state, c)) targets[node_of(*next)].add(uint8_t(c), uint8_t(c));
      for (auto& [to, set] : targets) edges.push_back({from, to, label(std::move(set))});
      if (accepts(state)) edges.push_back({from, 1, no_expr});
    }
    return grammar_.graph(nodes_, std::move(edges));
  }

 private:
  static Decimal whole_number(int64_t value) {
    Decimal out = *Decimal::parse(std::to_string(value < 0 ? -value : value));
    out.negative = value < 0;
    return out;
  }
  ExprId label(CharSet set) {
    const auto [at, is_new] = labels_.emplace(set, 0);
    if (is_new) at->second = grammar_.chars(std::move(set));
    return at->second;
  }
  uint32_t node_of(const NumberState& state) {
    const auto [at, is_new] = ids_.emplace(state, ids_.empty() ? 0 : nodes_);
    if (is_new) {
      todo_.push_back(state);
      nodes_ += ids_.size() > 1;
      grammar_.work().add_states();
    }
    return at->second;
  }

  template <class Change>
  void each_bound(NumberState& state, std::array<Compared, 2> NumberState::*member, Change change) const {
    for (size_t i = 0; i < 2; ++i)
      if (bounds_[i]) (state.*member)[i] = change(*bounds_[i], (state.*member)[i]);
  }

  void compare_size(NumberState& s, int digit) const {
    s.size = s.scientific || limits_.integer ? Compared{} : largest_.mantissa_digit(s.size, digit);
  }

  std::optional<NumberState> read(NumberState s, char c) const {
    const bool is_digit = c >= '0' && c <= '9';
    const int digit = c - '0';
    const auto plain = &NumberState::plain, mantissa = &NumberState::mantissa;
    const auto whole = [&] {
      each_bound(s, plain, [&](const Bound& b, Compared at) { return b.whole_digit(at, digit); });
      each_bound(s, mantissa, [&](const Bound& b, Compared at) { return b.mantissa_digit(at, digit); });
      compare_size(s, digit);
      if (limits_.multiple_of) s.rest = (s.rest * 10 + digit) % limits_.multiple_of;
    };
    const bool in_exponent = s.part >= Part::e;
    if (is_digit && !in_exponent && ++s.digits > max_digits_) return std::nullopt;
    switch (s.part) {
      case Part::begin:
      case Part::minus:
        if (c == '-' && s.part == Part::begin) return s.negative = true, s.part = Part::minus, s;
        if (!is_digit) return std::nullopt;
        s.part = digit == 0 ? Part::zero : Part::whole;
        if (digit != 0) whole();
        return s;
      case Part::zero:
      case Part::whole:
        if (is_digit) {
          if (s.part == Part::zero) return std::nullopt;
          s.scientific = true;  // of more than one digit before the point
          whole();
          return s;
        }
        if (limits_.integer) return std::nullopt;
        if (c == '.') {
          each_bound(s, plain, [&](const Bound& b, Compared at) { return b.end_of_whole(at); });
          s.scientific |= s.part == Part::zero;
          s.part = Part::point;
          return s;
        }
        s.scientific |= s.part == Part::zero;
        return begin_exponent(s, c);
      case Part::point:
      case Part::fraction:
        if (is_digit) {
          s.part = Part::fraction;
          each_bound(s, plain, [&](const Bound& b, Compared at) { return b.fraction_digit(at, digit); });
          each_bound(s, mantissa, [&](const Bound& b, Compared at) { return b.mantissa_digit(at, digit); });
          compare_size(s, digit);
          return s;
        }
        return s.part == Part::fraction ? begin_exponent(s, c) : std::nullopt;
      case Part::e:
        if (c == '+' || c == '-') return s.part = Part::sign, s.below_one = c == '-', s;
        [[fallthrough]];
      case Part::sign:
      case Part::exponent:
        if (!is_digit || ++s.exponent > max_exponent_digits) return std::nullopt;
        s.part = Part::exponent;
        if (!s.below_one) {
          const Bound& largest = s.long_mantissa ? long_exponent_ : largest_exponent_;
          if (digit != 0 || s.exponent_size.at > 0) s.exponent_size = largest.whole_digit(s.exponent_size, digit);
          const int8_t order = largest.end_of_whole(s.exponent_size).order;
          if (s.exponent == max_exponent_digits && (order > 0 || (order == 0 && s.size.order > 0))) return std::nullopt;
        }
        for (size_t i = 0; i < 2; ++i)  // zeros in front do not count
          if (powers_[i] && (digit != 0 || s.power[i].at > 0)) s.power[i] = powers_[i]->whole_digit(s.power[i], digit);
        return s;
    }
    return std::nullopt;
  }

  // With bounds only d.ddd is compared, so other forms have no exponent.
  std::optional<NumberState> begin_exponent(NumberState s, char c) const {
    if (c != 'e' && c != 'E') return std::nullopt;
    const bool bounded = limits_.min || limits_.max;
    if (bounded && s.scientific) return std::nullopt;
    s.part = Part::e;
    s.long_mantissa = std::exchange(s.scientific, true);
    s.digits = 0;
    s.size = s.long_mantissa ? Compared{} : Compared{largest_.end_of_mantissa(s.size), 0};
    s.plain = {};
    for (size_t i = 0; i < 2; ++i)
      if (bounds_[i]) s.mantissa[i] = {bounds_[i]->end_of_mantissa(s.mantissa[i]), 0};
    return s;
  }

  // How the size of the number that ends here compares with that of a bound.
  int order(const NumberState& s, size_t i) const {
    const Bound& bound = *bounds_[i];
    if (s.part == Part::zero || s.part == Part::whole) return bound.end_of_fraction(bound.end_of_whole(s.plain[i]));
    if (s.part == Part::fraction) return bound.end_of_fraction(s.plain[i]);
    if (bound.zero()) return 1;
    // Both as d.ddd times a power of ten; `size` compares the powers without their signs.
    const int size = powers_[i]->end_of_fraction(powers_[i]->end_of_whole(s.power[i]));
    const bool bound_below = bound.exponent() < 0;
    int power = 0;
    if (s.below_one)
      power = bound_below ? -size : bound.exponent() > 0 ? -1 : -size;
    else
      power = bound_below ? 1 : size;
    return power ? power : s.mantissa[i].order;
  }

  bool accepts(const NumberState& s) const {
    if (s.part != Part::zero && s.part != Part::whole && s.part != Part::fraction && s.part != Part::exponent)
      return false;
    if (s.rest != 0) return false;
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<Decimal>& value = i == 0 ? limits_.min : limits_.max;
      if (!value) continue;
      int order = this->order(s, i);
      // Different signs decide by themselves; -0 is 0.
      const bool zero = value->digits.empty();
      if (!zero && s.negative != value->negative)
        order = s.negative ? -1 : 1;
      else if (s.negative)
        order = -order;
      const bool strict = i == 0 ? limits_.above_min : limits_.below_max;
      if (i == 0 ? order < 0 : order > 0) return false;
      if (strict && order == 0) return false;
    }
    return true;
  }

  static constexpr int max_exponent_digits = 3;
  // Readers keep numbers in fp64, where they have to be finite. After more digits before the point the exponent is so
  // small that any number of digits is.
  const Bound largest_{*Decimal::parse("1.7976931348623157e308")};
  const Bound largest_exponent_{whole_number(largest_.exponent())}, long_exponent_{whole_number(308 - max_digits)};
  Grammar& grammar_;
  const NumberLimits& limits_;
  std::vector<std::optional<Bound>> bounds_, powers_;  // of min and max
  int max_digits_ = max_digits;
  std::map<NumberState, uint32_t> ids_;
  std::map<CharSet, ExprId> labels_;
  std::vector<NumberState> todo_;
  uint32_t nodes_ = 2;
};

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view json) {
  Decimal out;
  if (json.starts_with('-')) out.negative = true, json.remove_prefix(1);
  bool point = false, any = false;
  size_t i = 0;
  for (; i < json.size() && (json[i] == '.' || (json[i] >= '0' && json[i] <= '9')); ++i) {
    if (json[i] == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    any = true;
    out.exponent += !point;
    out.digits += json[i];
  }
  if (!any) return std::nullopt;
  if (i < json.size()) {
    if (json[i] != 'e' && json[i] != 'E') return std::nullopt;
    const bool below = ++i < json.size() && json[i] == '-';
    i += i < json.size() && (json[i] == '-' || json[i] == '+');
    int64_t value = 0;
    if (i == json.size()) return std::nullopt;
    for (; i < json.size(); ++i) {
      if (json[i] < '0' || json[i] > '9') return std::nullopt;
      value = std::min<int64_t>(value * 10 + (json[i] - '0'), 1'000'000);
    }
    out.exponent += below ? -value : value;
  }
  const size_t lead = out.digits.find_first_not_of('0');
  if (lead == std::string::npos) return Decimal{out.negative, "", 0};
  out.exponent -= int64_t(lead);
  out.digits = out.digits.substr(lead, out.digits.find_last_not_of('0') + 1 - lead);
  if (out.digits.size() > 1000 || out.exponent > 10'000 || out.exponent < -10'000) return std::nullopt;
  return out;
}

int64_t Decimal::modulo(int64_t divisor) const {
  int64_t rest = 0;
  for (int64_t i = 0; i < exponent; ++i)
    rest = (rest * 10 + (i < int64_t(digits.size()) ? digits[size_t(i)] - '0' : 0)) % divisor;
  return rest;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  const bool below_a = a.negative && !a.digits.empty(), below_b = b.negative && !b.digits.empty();
  if (below_a != below_b) return below_b <=> below_a;
  return below_a ? compare_size(b, a) : compare_size(a, b);
}

ExprId number_expr(Grammar& grammar, const NumberLimits& limits) { return NumberMachine(grammar, limits).run(); }

}  // namespace easydel::text::constrain

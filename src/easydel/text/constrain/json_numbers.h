// JSON numbers within bounds, as expressions over bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/text/constrain/grammar.h"

namespace easydel::text::constrain {

// A decimal number, exactly: (-) 0.digits x 10^exponent. Zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;  // neither the first nor the last is 0
  int64_t exponent = 0;

  static std::optional<Decimal> parse(std::string_view json);  // nullopt: not a JSON number, or too large to handle
  bool is_integer() const { return digits.empty() || exponent >= int64_t(digits.size()); }
  // The remainder of a whole number.
  int64_t modulo(int64_t divisor) const;
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) { return (a <=> b) == 0; }
};

struct NumberLimits {
  bool integer = false;
  std::optional<Decimal> min, max;
  bool above_min = false, below_max = false;  // min and max themselves are not allowed
  int64_t multiple_of = 0;                    // 0: of nothing; else `integer` holds
  bool any() const { return !min && !max && !multiple_of; }
};

// Numbers as JSON writes them, of at most max_digits digits. Whole numbers have no fraction and no exponent; a number
// with an exponent that has bounds is written with one digit before the point, which is not 0; a multiple of a number
// has at most 18 digits.
ExprId number_expr(Grammar& grammar, const NumberLimits& limits);

}  // namespace easydel::text::constrain

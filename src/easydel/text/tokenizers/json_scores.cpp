// The arithmetic of serde_json's de.rs without its feature float_roundtrip.
#include "easydel/text/tokenizers/json_scores.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

double times_power_of_ten(uint64_t digits, int64_t exponent) {
  static const auto powers = [] {
    std::array<double, 309> out{};
    for (int i = 0; i < 309; ++i) out[size_t(i)] = std::strtod(str("1e", i).c_str(), nullptr);
    return out;
  }();
  auto number = double(digits);
  while (true) {
    int64_t size = exponent < 0 ? -exponent : exponent;
    if (size < 309) return exponent >= 0 ? number * powers[size_t(size)] : number / powers[size_t(size)];
    if (number == 0 || exponent >= 0) return number * (exponent >= 0 && number != 0 ? 1e308 * 10 : 1);
    number /= 1e308;
    exponent += 308;
  }
}

}  // namespace

double serde_number(std::string_view token) {
  bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool fraction = false, full = false;
  size_t at = 0;
  for (; at < token.size() && (token[at] == '.' || (token[at] >= '0' && token[at] <= '9')); ++at) {
    if (token[at] == '.') {
      fraction = true;
      continue;
    }
    auto digit = uint64_t(token[at] - '0');
    // Digits that do not fit into 64 bits are dropped.
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (full) {
      exponent += !fraction;
    } else {
      digits = digits * 10 + digit;
      exponent -= fraction;
    }
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    bool below = ++at < token.size() && token[at] == '-';
    if (at < token.size() && (token[at] == '-' || token[at] == '+')) ++at;
    int64_t given = 0;
    for (; at < token.size() && token[at] >= '0' && token[at] <= '9'; ++at)
      given = std::min<int64_t>(given * 10 + (token[at] - '0'), 100000);
    exponent += below ? -given : given;
  }
  double number = times_power_of_ten(digits, exponent);
  return negative ? -number : number;
}

std::vector<double> read_scores(const simdjson::padded_string& json) try {
  std::vector<double> out;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document = parser.iterate(json);
  for (simdjson::ondemand::array row : document["model"]["vocab"].get_array()) {
    size_t column = 0;
    for (auto value : row)
      if (column++ == 1) out.push_back(serde_number(std::string_view(value.raw_json_token())));
  }
  return out;
} catch (const simdjson::simdjson_error& error) {
  refuse("tokenizer.json", str("'model.vocab' cannot be read: ", error.what()), "fetch the tokenizer again");
}

}  // namespace easydel::text

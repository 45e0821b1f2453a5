#include "easydel/quant/integer_codes.h"

#include <algorithm>
#include <cmath>

namespace easydel::quant {

void quantize_integers(kernels::Executor& executor, const IntegerCodes& rule, const float* values, int64_t n, int64_t k,
                       int8_t* codes, float* scales, int8_t* zeros) {
  const float low = -float(1 << (rule.bits - 1)), high = -low - 1;
  const int64_t groups = rule.groups(k), group = rule.group > 0 ? rule.group : k;
  executor.run(n, [&](int64_t row) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = row * k + g * group, end = std::min(first + group, (row + 1) * k);
      const auto [least, most] = std::minmax_element(values + first, values + end);
      const float size = std::max(std::fabs(*least), std::fabs(*most));
      const float scale = rule.has_zeros ? (*most - *least) / (high - low) : size / rule.divisor;
      const float divisor = scale == 0 ? 1 : scale;
      const float zero = rule.has_zeros ? std::clamp(std::nearbyint(low - *least / divisor), low, high) : 0;
      scales[row * groups + g] = rule.has_zeros ? divisor : scale;
      if (rule.has_zeros) zeros[row * groups + g] = int8_t(zero);
      for (int64_t i = first; i < end; ++i)
        codes[i] = int8_t(std::clamp(std::nearbyint(values[i] / divisor) + zero, low, high));
    }
  });
}

}  // namespace easydel::quant

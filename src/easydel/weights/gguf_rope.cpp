#include "easydel/weights/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace easydel::weights {

std::vector<float> llama3_rope_factors(double theta, int64_t dim, double factor, double low, double high,
                                       double original) {
  std::vector<float> out;
  for (int64_t i = 0; i < dim; i += 2) {
    const double turns = original / (2 * std::numbers::pi * std::pow(theta, double(i) / double(dim)));
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    out.push_back(float(1 / ((1 - smooth) / factor + smooth)));
  }
  return out;
}

void set_rope_factors(Value& parameters, std::span<const float> factors, int64_t original) {
  const double theta = *parameters.find("rope_theta")->as_double();
  const auto dim = int64_t(2 * factors.size());
  const double factor = factors.empty() ? 1.0 : double(factors.back());
  for (const int64_t length : {original, int64_t{8192}}) {
    const auto known = llama3_rope_factors(theta, dim, factor, 1, 4, double(length));
    const auto close = [](float a, float b) { return std::fabs(a - b) <= 1e-4f * std::fabs(b); };
    if (!std::ranges::equal(factors, known, close)) continue;
    parameters.set("rope_type", Value::text("llama3"));
    parameters.set("factor", Value::number(factor));
    parameters.set("low_freq_factor", Value::number(1.0));
    parameters.set("high_freq_factor", Value::number(4.0));
    parameters.set("original_max_position_embeddings", Value::integer(length));
    return;
  }
  Value list = Value::list();
  for (const float one : factors) list.items.push_back(Value::number(double(one)));
  parameters.set("rope_type", Value::text("longrope"));
  parameters.set("factor", Value::number(1.0));
  parameters.set("attention_factor", Value::number(1.0));
  parameters.set("original_max_position_embeddings", Value::integer(original));
  parameters.set("short_factor", list);
  parameters.set("long_factor", list);
}

}  // namespace easydel::weights

#include "easydel/server/pair_activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace easydel::server {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double elu(double x, double scale, double alpha) { return scale * (x > 0 ? x : alpha * std::expm1(x)); }
double clamp(double x, double low, double high) { return std::clamp(x, low, high); }

// https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity
constexpr std::array<std::pair<std::string_view, PairActivation>, 21> activations = {{
    {"CELU", [](double x) { return elu(x, 1, 1); }},
    {"ELU", [](double x) { return elu(x, 1, 1); }},
    {"GELU", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"Hardshrink", [](double x) { return std::abs(x) > 0.5 ? x : 0; }},
    {"Hardsigmoid", [](double x) { return clamp(x + 3, 0, 6) / 6; }},
    {"Hardswish", [](double x) { return x * clamp(x + 3, 0, 6) / 6; }},
    {"Hardtanh", [](double x) { return clamp(x, -1, 1); }},
    {"Identity", [](double x) { return x; }},
    {"LeakyReLU", [](double x) { return x > 0 ? x : 0.01 * x; }},
    {"LogSigmoid", [](double x) { return -softplus(-x); }},
    {"Mish", [](double x) { return x * std::tanh(softplus(x)); }},
    {"ReLU", [](double x) { return std::max(x, 0.0); }},
    {"ReLU6", [](double x) { return clamp(x, 0, 6); }},
    {"SELU", [](double x) { return elu(x, 1.0507009873554804934193349852946, 1.6732632423543772848170429916717); }},
    {"SiLU", [](double x) { return x * sigmoid(x); }},
    {"Sigmoid", sigmoid},
    {"Softplus", softplus},
    {"Softshrink", [](double x) { return x > 0.5    ? x - 0.5
                                         : x < -0.5 ? x + 0.5
                                                    : 0; }},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Tanhshrink", [](double x) { return x - std::tanh(x); }},
}};

}  // namespace

PairActivation find_pair_activation(std::string_view name) {
  const auto found = std::ranges::find(activations, name, &std::pair<std::string_view, PairActivation>::first);
  return found == activations.end() ? nullptr : found->second;
}

std::vector<std::string> pair_activation_names() {
  std::vector<std::string> out;
  for (const auto& [name, activation] : activations) out.emplace_back(name);
  return out;
}

}  // namespace easydel::server

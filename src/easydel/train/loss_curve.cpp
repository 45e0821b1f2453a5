// Curves of metrics as SVG: two polylines over a grid, readable on light and dark pages.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/train/report.h"

namespace easydel::train {
namespace {

constexpr std::string_view benchmark_prefix = "eval/";
constexpr double width = 760, height = 420, left = 64, right = 20, top = 44, bottom = 44;

struct Curve {
  std::vector<std::pair<double, double>> points;  // step, loss
};

struct Axis {
  double low, high, from, to;  // range of the values, and their coordinates
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// About five round numbers between low and high.
std::vector<double> ticks(double low, double high) {
  const double raw = (high - low) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  const double unit = raw / power < 1.5   ? power
                      : raw / power < 3.5 ? 2 * power
                      : raw / power < 7.5 ? 5 * power
                                          : 10 * power;
  std::vector<double> out;
  for (double tick = std::ceil(low / unit) * unit; tick <= high + unit * 1e-6; tick += unit) out.push_back(tick);
  return out;
}

std::string polyline(const Curve& curve, const Axis& x, const Axis& y, const std::string& colour, bool dots) {
  std::string out = "<polyline fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\" points=\"", marks;
  for (const auto& [step, loss] : curve.points) {
    const std::string px = short_number(x.at(step)), py = short_number(y.at(loss));
    out += px + "," + py + " ";
    if (dots) marks += "<circle cx=\"" + px + "\" cy=\"" + py + "\" r=\"3.5\" fill=\"" + colour + "\"/>\n";
  }
  return out + "\"/>\n" + marks;
}

// One picture of both curves, without the element around it.
std::string panel(const Curve& training, const Curve& evaluation, const std::string& title) {
  double low_x = 0, high_x = 1, low = INFINITY, high = -INFINITY;
  for (const Curve* curve : {&training, &evaluation})
    for (const auto& [step, value] : curve->points) {
      high_x = std::max(high_x, step);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  if (!(low <= high)) low = 0, high = 1;
  const double margin = std::max((high - low) * 0.05, std::abs(high) * 1e-3 + 1e-9);
  const Axis x{low_x, high_x, left, width - right}, y{low - margin, high + margin, height - bottom, top};
  std::string out = str("<text x=\"", left, "\" y=\"22\" font-size=\"15\">", escaped(title), "</text>\n");
  for (const double tick : ticks(y.low, y.high))
    out += str("<line x1=\"", left, "\" x2=\"", width - right, "\" y1=\"", y.at(tick), "\" y2=\"", y.at(tick),
               "\" stroke=\"#80808040\"/>\n<text x=\"", left - 8, "\" y=\"", y.at(tick) + 4, "\" text-anchor=\"end\">",
               short_number(tick), "</text>\n");
  for (const double tick : ticks(x.low, x.high))
    out += str("<text x=\"", x.at(tick), "\" y=\"", height - bottom + 18, "\" text-anchor=\"middle\">",
               short_number(tick), "</text>\n");
  out +=
      str("<text x=\"", (left + width - right) / 2, "\" y=\"", height - 8, "\" text-anchor=\"middle\">step</text>\n");
  out += polyline(training, x, y, "#3b82c4", training.points.size() == 1);
  out += polyline(evaluation, x, y, "#d9822b", true);
  return out + str("<text x=\"", width - right,
                   "\" y=\"22\" text-anchor=\"end\"><tspan fill=\"#3b82c4\">training</tspan>",
                   evaluation.points.empty() ? "" : "  <tspan fill=\"#d9822b\">evaluation</tspan>", "</text>\n");
}

constexpr const char* style = "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#808080\">\n";

struct Curves {
  Curve training, evaluation;
};

// Of every finite number in metrics.jsonl, in the order in which the names appear.
std::vector<std::pair<std::string, Curves>> read_curves(const std::filesystem::path& metrics,
                                                        const std::string& prefix) {
  std::vector<std::pair<std::string, Curves>> out;
  const std::string before = prefix.empty() ? "" : prefix + "/";
  data::for_each_line(metrics, [&](std::string_view line, int64_t) {
    const Value record = parse_json(line, metrics.string());
    const double step = record.find("step") ? record.find("step")->as_double().value_or(0) : 0;
    for (const auto& [key, value] : record.entries) {
      const std::optional<double> number = value.as_double();
      if (key == "step" || !number || !std::isfinite(*number)) continue;
      std::string name = key.starts_with(before) ? key.substr(before.size()) : key;
      const bool evaluation = name.starts_with("eval_");
      if (evaluation) name.erase(0, 5);
      auto found = std::ranges::find(out, name, &std::pair<std::string, Curves>::first);
      if (found == out.end()) found = out.insert(out.end(), {name, {}});
      (evaluation ? found->second.evaluation : found->second.training).points.emplace_back(step, *number);
    }
    return true;
  });
  return out;
}

}  // namespace

std::string loss_curve(const std::filesystem::path& metrics, const std::string& title, const std::string& prefix) {
  Curves loss;
  for (auto& [name, curves] : read_curves(metrics, prefix))
    if (name == "loss") loss = std::move(curves);
  return str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, style,
             panel(loss.training, loss.evaluation, title), "</svg>\n");
}

namespace {

using NamedCurves = std::vector<std::pair<std::string, Curves>>;

std::string in_two_columns(const NamedCurves& curves, const std::string& title) {
  const size_t rows = (curves.size() + 1) / 2;
  std::string out = str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", 2 * width, " ",
                        double(rows) * height, style, "<title>", escaped(title), "</title>\n");
  for (size_t i = 0; i < curves.size(); ++i)
    out += str("<svg x=\"", double(i % 2) * width, "\" y=\"", double(i / 2) * height, "\" width=\"", width,
               "\" height=\"", height, "\">\n",
               panel(curves[i].second.training, curves[i].second.evaluation, curves[i].first), "</svg>\n");
  return out + "</svg>\n";
}

}  // namespace

std::string all_curves(const std::filesystem::path& metrics, const std::string& title, const std::string& prefix) {
  NamedCurves curves = read_curves(metrics, prefix);
  std::erase_if(curves, [](const auto& one) { return one.first.starts_with(benchmark_prefix); });
  return in_two_columns(curves, title);
}

std::string benchmark_curves(const std::filesystem::path& metrics, const std::string& title,
                             const std::string& prefix) {
  NamedCurves curves;
  for (auto& [name, found] : read_curves(metrics, prefix)) {
    if (!name.starts_with(benchmark_prefix) || name.find("_stderr") != std::string::npos) continue;
    curves.emplace_back(name.substr(benchmark_prefix.size()), Curves{{}, std::move(found.training)});
  }
  return curves.empty() ? std::string() : in_two_columns(curves, title);
}

}  // namespace easydel::train

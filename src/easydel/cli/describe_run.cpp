// `easydel describe run`: what a training run was, what became of its numbers, and in what two runs differ. Reads
// metrics.jsonl and the newest checkpoint's state.json; no model is loaded.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/data/byte_stream.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;

struct DescribedRun {
  fs::path folder;
  std::vector<std::pair<int64_t, std::string>> checkpoints;  // step and name, by step
  Value config;                                              // of the newest checkpoint; null: there is none
  std::vector<Value> records;

  // A key of the configuration as text; "-": not given.
  std::string setting(const char* section, const char* key) const {
    const Value* const in = config.find(section);
    const Value* const value = in ? in->find(key) : nullptr;
    return value && !value->is_null() ? value->scalar : "-";
  }
  // step and value of each record that has this number.
  std::vector<std::pair<int64_t, double>> values(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> out;
    for (const Value& record : records) {
      const Value *value = record.find(name), *step = record.find("step");
      if (value && step && value->as_double()) out.emplace_back(step->as_int().value_or(0), *value->as_double());
    }
    return out;
  }
};

DescribedRun read_run(const std::string& given) {
  DescribedRun out;
  out.folder = given;
  // A checkpoint means its run.
  if (files::exists(out.folder / "state.json")) out.folder = files::absolute(out.folder).parent_path();
  const fs::path metrics = out.folder / "metrics.jsonl";
  if (!files::is_folder(out.folder)) refuse(given, "there is no such folder", "give the folder of a run");
  for (const fs::path& entry : files::list(out.folder)) {
    const std::string name = entry.filename().string();
    int64_t step = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with("run-") || std::from_chars(name.data() + 4, end, step).ptr != end) continue;
    if (files::exists(entry / "state.json")) out.checkpoints.emplace_back(step, name);
  }
  std::ranges::sort(out.checkpoints);
  if (!out.checkpoints.empty()) {
    const Value state = parse_file(out.folder / out.checkpoints.back().second / "state.json");
    if (const Value* config = state.find("config")) out.config = *config;
  }
  if (files::exists(metrics))
    data::for_each_line(metrics, [&](std::string_view line, int64_t) {
      out.records.push_back(parse_json(line, metrics.string()));
      return true;
    });
  if (out.checkpoints.empty() && out.records.empty()) {
    std::vector<std::string> runs;
    for (const fs::path& entry : files::list(out.folder))
      if (files::exists(entry / "metrics.jsonl"))
        runs.push_back("'" + (fs::path(given) / entry.filename()).string() + "'");
    refuse(given, "is not the folder of a run: it has neither metrics.jsonl nor a checkpoint",
           runs.empty() ? "give the folder with metrics.jsonl, below trainer.save_directory"
                        : "did you mean " + join(runs, " or ") + "?");
  }
  return out;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string range_text(const std::vector<std::pair<int64_t, double>>& values) {
  const auto finite = [](const auto& v) { return std::isfinite(v.second) ? v.second : INFINITY; };
  const auto lowest = std::ranges::min(values, {}, finite);
  return str(short_number(values.front().second), " at step ", values.front().first, ", ",
             short_number(values.back().second), " at step ", values.back().first, "; lowest ",
             short_number(lowest.second), " at step ", lowest.first);
}

// Rows of text with a point for each column, the mean of the values that fall into it.
std::string text_curve(const std::vector<std::pair<int64_t, double>>& values) {
  constexpr size_t columns = 64, rows = 10;
  std::vector<std::pair<double, int>> sums(columns, {0, 0});
  const int64_t first = values.front().first, span = std::max<int64_t>(1, values.back().first - first);
  for (const auto& [step, value] : values) {
    if (!std::isfinite(value)) continue;
    auto& [sum, count] = sums[std::min(columns - 1, size_t((step - first) * int64_t(columns) / span))];
    sum += value, ++count;
  }
  double low = INFINITY, high = -INFINITY;
  for (auto& [sum, count] : sums)
    if (count) sum /= count, low = std::min(low, sum), high = std::max(high, sum);
  if (!(low <= high)) return "";
  const double height = std::max(high - low, 1e-12);
  std::vector<std::string> lines(rows, std::string(columns, ' '));
  for (size_t c = 0; c < columns; ++c)
    if (sums[c].second) lines[std::min(rows - 1, size_t((high - sums[c].first) / height * double(rows)))][c] = '*';
  std::string out;
  for (size_t r = 0; r < rows; ++r) {
    lines[r].erase(lines[r].find_last_not_of(' ') + 1);
    const std::string label = r == 0 ? short_number(high) : r + 1 == rows ? short_number(low) : "";
    out += str("  ", std::string(10 - std::min<size_t>(10, label.size()), ' '), label, " |", lines[r], "\n");
  }
  return out;
}

std::string about(const DescribedRun& run) {
  const auto losses = run.values("loss"), held_out = run.values("eval_loss"), seconds = run.values("seconds"),
             tokens = run.values("num_tokens");
  std::vector<std::vector<std::string>> rows;
  if (!run.config.is_null())
    rows.push_back({"method", run.setting("trainer", "trainer_type") + " of " + run.setting("model", "name_or_path")});
  if (!losses.empty()) rows.push_back({"steps", std::to_string(losses.back().first)});
  if (!tokens.empty()) rows.push_back({"tokens", count_text(int64_t(tokens.back().second))});
  if (!seconds.empty()) rows.push_back({"seconds", short_number(seconds.back().second)});
  if (!losses.empty()) rows.push_back({"loss", range_text(losses)});
  if (!held_out.empty()) rows.push_back({"held-out loss", range_text(held_out)});
  std::string names;
  for (const auto& [step, name] : run.checkpoints) names += (names.empty() ? "" : ", ") + name;
  rows.push_back({"checkpoints", names.empty() ? "none" : names});
  std::string out = run.folder.string() + "\n" + text_table(rows);
  if (losses.size() > 1) out += "\nloss\n" + text_curve(losses);
  return out;
}

void flatten(const Value& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (!value.is_map() || value.entries.empty()) {
    out[path] = to_yaml_flow(value);
    return;
  }
  for (const auto& [key, below] : value.entries) flatten(below, path.empty() ? key : path + "." + key, out);
}

// The rows of two tables that are not equal.
std::string different_rows(const std::map<std::string, std::string>& one,
                           const std::map<std::string, std::string>& other, const std::string& title) {
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const auto& [name, text] : one) all[name] = {text, "-"};
  for (const auto& [name, text] : other) all.try_emplace(name, "-", "-").first->second.second = text;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, texts] : all)
    if (texts.first != texts.second) rows.push_back({name, texts.first, texts.second});
  return "\n" + title + (rows.empty() ? ": none\n" : "\n" + text_table(rows));
}

// The last value of each number.
std::map<std::string, std::string> last_numbers(const DescribedRun& run) {
  std::map<std::string, std::string> out;
  for (const Value& record : run.records)
    for (const auto& [name, value] : record.entries)
      if (const auto number = value.as_double()) out[name] = short_number(*number);
  return out;
}

}  // namespace

int run_describe_run(const DescribeRunOptions& options) {
  const DescribedRun run = read_run(options.folder);
  std::string out = about(run);
  if (!options.other.empty()) {
    const DescribedRun other = read_run(options.other);
    out += "\n" + about(other);
    std::map<std::string, std::string> one, two;
    flatten(run.config, "", one);
    flatten(other.config, "", two);
    out += different_rows(one, two, "settings that differ");
    out += different_rows(last_numbers(run), last_numbers(other), "last numbers that differ");
  }
  print(out);
  return 0;
}

}  // namespace easydel::cli

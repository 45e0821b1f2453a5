#include "easydel/train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <mutex>
#include <optional>

#include "easydel/base/bar.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"

namespace easydel::train {
namespace {

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<long long>(seconds + 0.5);
  char text[48];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%02lld:%02lld", s / 60, s % 60);
  }
  return text;
}

std::string count(double value) {
  char text[32];
  std::snprintf(text, sizeof text,
                value >= 1e6   ? "%.2fM"
                : value >= 1e4 ? "%.1fk"
                               : "%.0f",
                value >= 1e6   ? value / 1e6
                : value >= 1e4 ? value / 1e3
                               : value);
  return text;
}

template <class... Values>
std::string printed(const char* format, Values... values) {
  char text[160];
  const int size = std::snprintf(text, sizeof text, format, values...);
  return {text, size_t(std::clamp<int>(size, 0, int(sizeof text) - 1))};
}

// What a line shows of a step, apart from the step itself.
struct Figures {
  explicit Figures(const StepReport& r)
      : loss(printed("  loss %.4f", r.mean_loss)),
        mean(r.mean_steps == 1 ? std::string(" (this step)") : str(" (mean of ", r.mean_steps, ")")),
        speed(str("  ", count(r.tokens_per_second), " tok/s")),
        left("  left " + duration(r.seconds_left)) {
    if (r.teraflops >= 0.001) teraflops = printed("  %.3f TFLOP/s", r.teraflops);
    if (r.share_of_peak) peak = printed(" (%.0f%% of peak)", 100 * *r.share_of_peak);
  }
  std::string loss, mean, speed, teraflops, peak, left;
};

// Adds the parts in their order while they fit into `columns`.
std::string fitted(std::string text, std::initializer_list<std::string> parts, int columns) {
  for (const std::string& part : parts)
    if (int(text.size() + part.size()) <= columns) text += part;
  return text.substr(0, size_t(std::max(columns, 0)));
}

constexpr int any_width = 1 << 20;

std::string evaluation_line(const EvaluationReport& r, int columns) {
  const auto shown = [&](std::string_view name, const char* format) {
    const auto found = std::ranges::find(r.metrics, name, &std::pair<std::string, double>::first);
    return found == r.metrics.end() ? std::string() : printed(format, found->second);
  };
  return fitted(str("evaluation after step ", r.step),
                {printed(": loss %.4f", r.loss), shown("perplexity", ", perplexity %.3f"),
                 shown("bits_per_byte", ", %.4f bits per byte"),
                 str(", ", count(double(r.tokens)), " tokens in ", duration(r.seconds))},
                columns);
}

std::string benchmark_line(const BenchmarkReport& r, int columns) {
  std::string metrics;
  for (const auto& [name, value] : r.metrics)
    if (name.find("_stderr") == std::string::npos)
      metrics += printed(metrics.empty() ? ": " : ", ") + name + printed(" %.4f", value);
  return fitted(str("benchmarks after step ", r.step), {metrics, ", in " + duration(r.seconds)}, columns);
}

class Lines : public Watcher {
 public:
  explicit Lines(std::FILE* stream) : stream_(stream) {}
  void stepped(const StepReport& r) override {
    if (!r.logged) return;
    const Figures f(r);
    std::fprintf(stream_, "%s\n",
                 str("step ", r.step, "/", r.steps, printed("  epoch %.2f", r.epoch), f.loss, f.mean, f.speed,
                     f.teraflops, f.peak, printed("  lr %.3g", r.learning_rate), f.left)
                     .c_str());
    std::fflush(stream_);
  }
  void evaluated(const EvaluationReport& r) override {
    std::fprintf(stream_, "%s\n", evaluation_line(r, any_width).c_str());
    std::fflush(stream_);
  }
  void benchmarked(const BenchmarkReport& r) override {
    std::fprintf(stream_, "%s\n", benchmark_line(r, any_width).c_str());
    std::fflush(stream_);
  }

 private:
  std::FILE* stream_;
};

class JsonLines : public Watcher {
 public:
  explicit JsonLines(std::FILE* stream) : stream_(stream) {}
  void stepped(const StepReport& r) override {
    if (r.logged) std::fprintf(stream_, "%s\n", to_json(as_record(r, "")).c_str());
  }
  void evaluated(const EvaluationReport& r) override {
    std::fprintf(stream_, "%s\n", to_json(as_record(r, "")).c_str());
  }
  void benchmarked(const BenchmarkReport& r) override {
    std::fprintf(stream_, "%s\n", to_json(as_record(r, "")).c_str());
  }

 private:
  std::FILE* stream_;
};

class Bar : public Watcher {
 public:
  explicit Bar(std::FILE* stream) : stream_(stream), colour_(wants_colour()) {
    log::set_sink([this](log::Level level, std::string_view text) {
      const char* name = level == log::Level::warning ? "warning: " : level == log::Level::error ? "error: " : "";
      above(str(name, text));
    });
  }
  ~Bar() override {
    log::set_sink(nullptr);
    if (shown_) std::fputs("\n", stream_);
  }
  void started(int64_t step, int64_t steps) override {
    const std::lock_guard lock(mutex_);
    last_ = {};
    last_.step = step, last_.steps = steps;
    has_report_ = false;
    within_ = 0, work_.reset();
    running_ = true;
    draw();
  }
  void worked(const Work& work) override {
    const std::lock_guard lock(mutex_);
    if (work.kind == Work::Kind::step) {
      within_ = work.total > 0 ? double(work.done) / double(work.total) : 0;
      work_.reset();
    } else {
      work_ = work;
    }
    if (work.kind == Work::Kind::reading && work.done == work.total) {
      work_.reset();
      wipe();
    }
    draw();
  }
  void stepped(const StepReport& r) override {
    const std::lock_guard lock(mutex_);
    last_ = r;
    has_report_ = true;
    within_ = 0, work_.reset();
    draw();
  }
  void evaluated(const EvaluationReport& r) override {
    {
      const std::lock_guard lock(mutex_);
      work_.reset();
    }
    above(evaluation_line(r, columns_of(stream_) - 1));
  }
  void benchmarked(const BenchmarkReport& r) override {
    {
      const std::lock_guard lock(mutex_);
      work_.reset();
    }
    above(benchmark_line(r, columns_of(stream_) - 1));
  }
  void finished() override {
    const std::lock_guard lock(mutex_);
    work_.reset();
    if (running_) draw();
    if (shown_) std::fputs("\n", stream_);
    shown_ = running_ = false;
  }

 private:
  // One line of at most `columns` - 1 characters; what matters least is left out first.
  std::string line(int columns) const {
    const int most = columns - 1;
    if (work_ && work_->kind == Work::Kind::reading)
      return fitted("reading the data", {str("  ", counted(work_->done, "row"))}, most);
    if (work_) {
      const char* const name = work_->kind == Work::Kind::benchmarks ? "benchmarks " : "evaluation ";
      return with_bar(str(name, work_->done, "/", work_->total), "", share_of(*work_), most);
    }
    const StepReport& r = last_;
    const std::string head = str("step ", r.step, "/", r.steps);
    const double share = r.steps > 0 ? (double(r.step) + within_) / double(r.steps) : 1;
    if (!has_report_) return with_bar(head, "", share, most);
    const Figures f(r);
    int room = most - int(head.size() + f.loss.size() + f.left.size());
    if (room < 0) return fitted(head, {f.loss}, most);
    const int bar = room >= smallest_bar + 1 ? smallest_bar + 1 : 0;
    room -= bar;
    std::string after = f.loss;
    for (const std::string& part : {f.mean, f.speed, f.teraflops, f.peak}) {
      if (int(part.size()) > room) break;
      after += part;
      room -= int(part.size());
    }
    return with_bar(head, after + f.left, share, most);
  }

  static double share_of(const Work& work) { return work.total > 0 ? double(work.done) / double(work.total) : 0; }

  std::string with_bar(const std::string& head, const std::string& after, double share, int most) const {
    const int room = std::min(most - int(head.size() + after.size()) - 1, 42);
    if (room < smallest_bar) return fitted(head, {after}, most);
    return str(head, " ", bar_of(share, room, colour_), after);
  }

  void above(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stream_, "\r\033[K%s\n", text.c_str());
    shown_ = false;
    draw();
    std::fflush(stream_);
  }

  void wipe() {
    std::fputs("\r\033[K", stream_);
    std::fflush(stream_);
    shown_ = false;
  }

  void draw() {
    if (!running_ && !work_) return;
    std::fprintf(stream_, "\r\033[K%s", line(columns_of(stream_)).c_str());
    std::fflush(stream_);
    shown_ = true;
  }

  static constexpr int smallest_bar = 10;
  std::FILE* stream_;
  bool colour_, shown_ = false, running_ = false, has_report_ = false;
  StepReport last_;           // the last step; without a report, where the run began
  double within_ = 0;         // share of the step that is being computed
  std::optional<Work> work_;  // is shown instead of the step
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Watcher> make_progress(ProgressBar kind, std::FILE* stream) {
  if (kind == ProgressBar::json) return std::make_unique<JsonLines>(stream);
  if (isatty(fileno(stream))) return std::make_unique<Bar>(stream);
  return std::make_unique<Lines>(stream);
}

}  // namespace easydel::train

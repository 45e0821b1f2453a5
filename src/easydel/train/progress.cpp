#include "easydel/train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "easydel/base/bar.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"

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

std::string figures(const StepReport& r) {
  char text[160];
  int used = std::snprintf(text, sizeof text, "loss %.4f  %s tok/s", r.loss, count(r.tokens_per_second).c_str());
  if (r.teraflops >= 0.001 && used > 0)
    used += std::snprintf(text + used, sizeof text - used, "  %.3f TFLOP/s", r.teraflops);
  if (r.share_of_peak && used > 0)
    std::snprintf(text + used, sizeof text - used, " (%.0f%% of peak)", 100 * *r.share_of_peak);
  return text;
}

std::string evaluation_line(const EvaluationReport& r) {
  char text[128];
  std::snprintf(text, sizeof text, "evaluation after step %lld: loss %.4f, perplexity %.3f, %s tokens in %s",
                static_cast<long long>(r.step), r.loss, std::exp(r.loss), count(double(r.tokens)).c_str(),
                duration(r.seconds).c_str());
  return text;
}

class Lines : public Watcher {
 public:
  explicit Lines(std::FILE* stream) : stream_(stream) {}
  void stepped(const StepReport& r) override {
    if (!r.logged) return;
    std::fprintf(stream_, "step %lld/%lld  epoch %.2f  %s  lr %.3g  left %s\n", static_cast<long long>(r.step),
                 static_cast<long long>(r.steps), r.epoch, figures(r).c_str(), r.learning_rate,
                 duration(r.seconds_left).c_str());
    std::fflush(stream_);
  }
  void evaluated(const EvaluationReport& r) override {
    std::fprintf(stream_, "%s\n", evaluation_line(r).c_str());
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
  void stepped(const StepReport& r) override {
    const std::lock_guard lock(mutex_);
    last_ = line(r);
    draw();
  }
  void evaluated(const EvaluationReport& r) override { above(evaluation_line(r)); }
  void finished() override {
    const std::lock_guard lock(mutex_);
    if (shown_) std::fputs("\n", stream_);
    shown_ = false;
    last_.clear();
  }

 private:
  std::string line(const StepReport& r) const {
    const std::string before = str("step ", r.step, "/", r.steps, " "),
                      after = str("  ", figures(r), "  left ", duration(r.seconds_left));
    const int room = std::clamp(columns_of(stream_) - int(before.size() + after.size()) - 1, 0, 42);
    const double share = r.steps > 0 ? double(r.step) / double(r.steps) : 1;
    return str(before, bar_of(share, room, colour_), after);
  }

  void above(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stream_, "\r\033[K%s\n", text.c_str());
    draw();
  }

  void draw() {
    if (last_.empty()) return;
    std::fprintf(stream_, "\r\033[K%s", last_.c_str());
    std::fflush(stream_);
    shown_ = true;
  }

  std::FILE* stream_;
  bool colour_, shown_ = false;
  std::string last_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Watcher> make_progress(ProgressBar kind, std::FILE* stream) {
  if (kind == ProgressBar::json) return std::make_unique<JsonLines>(stream);
  if (isatty(fileno(stream))) return std::make_unique<Bar>(stream);
  return std::make_unique<Lines>(stream);
}

}  // namespace easydel::train

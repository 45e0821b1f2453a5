#include "easydel/train/report.h"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/byte_stream.h"

namespace easydel::train {
namespace {

// JSON has no NaN; Python and our own reader write and read it all the same.
Value number(double value) { return Value::number(value); }

std::string named(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

Value as_record(const StepReport& r, const std::string& prefix) {
  Value out = Value::map();
  const auto set = [&](const std::string& name, Value value) { out.set(named(prefix, name), std::move(value)); };
  out.set("step", Value::integer(r.step));
  set("epoch", number(r.epoch));
  set("loss", number(r.loss));
  if (r.gradient_norm) set("grad_norm", number(*r.gradient_norm));
  set("learning_rate", number(r.learning_rate));
  for (const auto& [name, value] : r.metrics) set(name, number(value));
  set("num_tokens", Value::integer(r.tokens_seen));
  set("tokens_per_second", number(r.tokens_per_second));
  set("examples_per_second", number(r.examples_per_second));
  set("teraflops", number(r.teraflops));
  if (r.share_of_peak) set("share_of_peak", number(*r.share_of_peak));
  set("seconds", number(r.seconds));
  return out;
}

Value as_record(const EvaluationReport& r, const std::string& prefix) {
  Value out = Value::map();
  const auto set = [&](const std::string& name, Value value) { out.set(named(prefix, name), std::move(value)); };
  out.set("step", Value::integer(r.step));
  set("eval_loss", number(r.loss));
  for (const auto& [name, value] : r.metrics) set("eval_" + name, number(value));
  for (const auto& [name, value] : r.of_sets) set("eval/" + name, number(value));
  set("eval_tokens", Value::integer(r.tokens));
  set("eval_examples", Value::integer(r.examples));
  set("eval_seconds", number(r.seconds));
  return out;
}

Value as_record(const BenchmarkReport& r, const std::string& prefix) {
  Value out = Value::map();
  out.set("step", Value::integer(r.step));
  for (const auto& [name, value] : r.metrics) out.set(named(prefix, "eval/" + name), number(value));
  out.set(named(prefix, "benchmark_seconds"), number(r.seconds));
  return out;
}

struct Records::Impl {
  files::Appender appender;
  std::set<std::string, std::less<>> last_keys;  // of the lines of the step that the run goes on from
  bool failed = false;                           // the last line, which was warned of

  template <class Write>
  void attempt(Write write) {
    try {
      write();
      failed = false;
    } catch (const UserError& error) {
      if (!std::exchange(failed, true)) log::warning(error.headline(), "; the run goes on without this record");
    }
  }
};

Records::Records(std::filesystem::path file, int64_t from_step) {
  std::set<std::string, std::less<>> last_keys;
  if (files::exists(file)) {
    std::string kept;
    data::for_each_line(file, [&](std::string_view line, int64_t) {
      try {
        const Value record = parse_json(line);
        const Value* const step = record.find("step");
        const int64_t number = step ? step->as_int().value_or(0) : 0;
        if (!step || number > from_step) return true;
        kept += std::string(line) + "\n";
        if (number == from_step)
          for (const auto& [key, value] : record.entries) last_keys.insert(key);
      } catch (const UserError&) {  // a line that a crash cut off
      }
      return true;
    });
    files::write(file, from_step > 0 ? kept : "");
  }
  impl_.reset(new Impl{files::Appender(file), std::move(last_keys)});
}

Records::~Records() = default;

bool Records::has(std::string_view key) const {
  const auto found = impl_->last_keys.lower_bound(key);
  return found != impl_->last_keys.end() && found->starts_with(key);
}

void Records::add(const Value& record) {
  impl_->attempt([&] { impl_->appender.line(to_json(record)); });
}

void Records::sync() {
  impl_->attempt([&] { impl_->appender.sync(); });
}

}  // namespace easydel::train

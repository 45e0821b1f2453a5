// A small run whose reports are kept, which a signal may stop.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "easydel/base/files.h"
#include "train/small_run.h"

namespace easydel::test {

// Raises a signal after a step.
struct SignalAfter : train::Watcher {
  SignalAfter(int64_t step, int signal = SIGTERM) : step(step), signal(signal) {}
  void stepped(const train::StepReport& report) override {
    reports.push_back(report);
    if (report.step == step) raise(signal);
  }
  void evaluated(const train::EvaluationReport& report) override { evaluations.push_back(report.step); }
  int64_t step;
  int signal;
  std::vector<train::StepReport> reports;
  std::vector<int64_t> evaluations;
};

struct WatchedRun {
  train::Outcome outcome;
  SignalAfter watched{0};
  std::string weights;
};

inline WatchedRun watched_run(train::TrainerParts parts, int64_t signal_after = 0, int signal = SIGTERM) {
  WatchedRun out;
  out.watched = {signal_after, signal};
  parts.watcher = &out.watched;
  train::Trainer trainer(std::move(parts));
  out.outcome = trainer.run();
  out.weights = weights_of(trainer.model());
  return out;
}

inline std::string shown(const TemporaryFolder& folder, const std::string& text) {
  return replaced(text, folder.path().string(), "DIR");
}

// Writes the manifest of a checkpoint whose files were changed.
inline void list_files_anew(const std::filesystem::path& checkpoint) {
  Value manifest = parse_file(checkpoint / "manifest.json");
  for (auto& [file, entry] : manifest.find("files")->entries) {
    entry.set("bytes", Value::integer(int64_t(std::filesystem::file_size(checkpoint / file))));
    entry.set("sha256", Value::text(files::sha256_of_file(checkpoint / file)));
  }
  write_file(checkpoint / "manifest.json", to_json(manifest, 2));
}

}  // namespace easydel::test

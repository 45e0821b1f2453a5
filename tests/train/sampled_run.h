// Runs of methods that sample: the story model on seven short prompts, what it sampled and reported.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/data/byte_stream.h"
#include "train/small_run.h"

namespace easydel::test {

inline std::vector<Value> json_lines(const std::filesystem::path& file) {
  std::vector<Value> out;
  data::for_each_line(file, [&](std::string_view line, int64_t) {
    out.push_back(parse_json(line));
    return true;
  });
  return out;
}

// `trainer`, then `keys`: entries of a YAML mapping, of which the later ones count. Every row has `columns` too, in
// JSON.
inline train::TrainerParts sampled_run(const std::filesystem::path& folder, const std::string& trainer,
                                       const std::string& keys, const std::string& columns = "") {
  const std::filesystem::path prompts = folder / "prompts.jsonl";
  if (!std::filesystem::exists(prompts)) {
    std::string lines;
    for (const char* prompt : {"Once upon a time", "One day", "The cat", "Tom and", "A dog", "Mom said", "Lily saw"})
      lines += str("{\"prompt\": \"", prompt, "\"", columns, "}\n");
    write_file(prompts, lines);
  }
  Value settings = Value::map();
  put(settings, "{max_completion_length: 12, temperature: 1.0, learning_rate: 1e-3, " + trainer + "}");
  put(settings, "{" + keys + "}");
  return small_run(folder, to_json(settings), "{informs: [{data_files: \"" + prompts.string() + "\"}]}");
}

struct FinishedRun {
  std::string weights, rollouts;
  std::vector<Value> metrics;
};

// `name`: trainer.model_name of the parts, which names their folder.
inline FinishedRun finished(train::TrainerParts parts, const std::filesystem::path& folder, const std::string& name) {
  const LogLines log;
  train::Trainer trainer(std::move(parts));
  trainer.run();
  return {weights_of(trainer.model()), read_file(folder / "out" / name / "rollouts.jsonl"),
          json_lines(folder / "out" / name / "metrics.jsonl")};
}

// Of a line of metrics, by its name or its last part.
inline std::optional<double> metric_of(const Value& line, const std::string& name) {
  for (const auto& [key, value] : line.entries)
    if (key == name || key.ends_with("/" + name)) return value.as_double();
  return std::nullopt;
}

}  // namespace easydel::test

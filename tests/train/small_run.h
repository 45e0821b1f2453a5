// A training run of seconds: the story model on a few lines. For tests of the loop, of checkpoints, of being killed.
#pragma once

#include <filesystem>
#include <string>

#include "easydel/base/log.h"
#include "easydel/config/fields.h"
#include "easydel/train/trainer.h"
#include "support/data.h"

namespace easydel::test {

inline void put(Value& document, const std::string& yaml) {
  const Value more = parse_yaml(yaml);
  for (const auto& [key, value] : more.entries) document.set(key, value);
}

// `trainer` and `mixture` are YAML over small defaults: lines of `folder`/lines.txt, checkpoints in `folder`/out/small.
inline train::TrainerParts small_run(const std::filesystem::path& folder, const std::string& trainer = "",
                                     const std::string& mixture = "",
                                     models::DTypeSetting dtype = models::DTypeSetting::fp32) {
  if (!std::filesystem::exists(folder / "lines.txt")) {
    std::string lines;
    for (int i = 0; i < 13; ++i)
      lines += str("Once upon a time there was a ", i % 3 ? "dog" : "cat", " who had ", i, " red balls",
                   i % 4 ? " and a hat." : ".", "\n");
    write_file(folder / "lines.txt", lines);
  }
  Value t = Value::map(), m = Value::map();
  put(t, str("{save_directory: \"", (folder / "out").string(),
             "\", model_name: small, learning_rate: 1e-3, total_batch_size: 4, "
             "num_train_epochs: 2, max_length: 64, log_steps: 1, report_steps: 1, clip_grad: 1.0}"));
  put(m, str("{informs: [{data_files: \"", (folder / "lines.txt").string(), "\"}]}"));
  if (!trainer.empty()) put(t, trainer);
  if (!mixture.empty()) put(m, mixture);

  train::TrainerParts parts;
  config::read(t, parts.trainer, "trainer").throw_if_any();
  config::read(m, parts.mixture, "mixture").throw_if_any();
  parts.load.dtype = parts.load.param_dtype = dtype;
  parts.load.training = true;
  const auto model = test_data("models/stories260K-hf");
  parts.model = models::load_model(model, parts.load);
  parts.tokenizer = text::Tokenizer::load(model);
  parts.save_dtype = dtype;
  return parts;
}

// All shards of a model, one after the other, as bytes.
inline std::string weights_of(models::Model& model) {
  std::string bytes;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const Tensor shard = entry.shard.detach().contiguous();
    bytes.append(static_cast<const char*>(shard.data_ptr()), static_cast<size_t>(shard.nbytes()));
  }
  return bytes;
}

// The log while one of these lives.
class LogLines {
 public:
  LogLines() {
    log::set_sink([this](log::Level, std::string_view line) { text.append(line) += "\n"; });
  }
  ~LogLines() { log::set_sink(nullptr); }
  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
  std::string text;
};

}  // namespace easydel::test

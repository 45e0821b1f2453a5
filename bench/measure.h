// Runs the program and measures seconds and peak memory; also measures the machine's peaks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace easydel::bench {

struct Measured {
  int status = 0;
  double seconds = 0;               // from start to end
  double first_output_seconds = 0;  // from start to the first byte on stdout; 0: no output
  double peak_mebibytes = 0;        // resident
  std::string out, err;
};

Measured run(const std::vector<std::string>& command);
// Runs build/bin/easydel with these arguments. If it fails, prints its output and exits.
Measured run_program(std::vector<std::string> arguments);

struct Spread {
  double least = 0, median = 0, most = 0;
};
Spread spread(std::vector<double> values);
std::string text(const Spread& spread, int digits);  // "least / median / most"

// A folder of a model with SmolLM2-135M's shape (30 layers of 576, 9 heads on 3, 49152 tokens), without weights: the
// program initializes them. The tokenizer is the story model's, so ids are below 512; the arithmetic is that of the
// shape.
std::filesystem::path smol_shape(const std::filesystem::path& folder);
constexpr double smol_parameters = 134515008;
constexpr double smol_table = 28311552;  // of these: the embedding table, which is also the head

// Text for prompts and training, and the story model's tokenizer for a model's folder.
std::filesystem::path prose();
void copy_tokenizer(const std::filesystem::path& model);

// The steps that a training run with log_steps 1 recorded in `folder`.
struct TrainingStep {
  double step = 0, loss = 0, tokens_per_second = 0, teraflops = 0;
};
std::vector<TrainingStep> training_steps(const std::filesystem::path& folder);

// The value after "--name" in the arguments, else `otherwise`.
std::string argument(int count, char** values, const std::string& name, const std::string& otherwise);

// Measures the machine's peaks and returns lines that report them.
struct Ceiling {
  double fp32_gflops = 0, bf16_gflops = 0, read_gbytes = 0;
};
Ceiling measure_ceiling();
std::string describe(const Ceiling& ceiling);

// A folder for the run's files, removed at the end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::filesystem::path source_root();

}  // namespace easydel::bench

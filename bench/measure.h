// Running the program and measuring it: seconds, peak memory, and the machine's own ceiling beside the figure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace easydel::bench {

struct Measured {
  int status = 0;
  double seconds = 0;               // from start to end
  double first_output_seconds = 0;  // from start to the first byte on stdout; 0: there was none
  double peak_mebibytes = 0;        // resident
  std::string out, err;
};

Measured run(const std::vector<std::string>& command);
// build/bin/easydel with these arguments; ends this process with what it said where it failed.
Measured run_program(std::vector<std::string> arguments);

struct Spread {
  double least = 0, median = 0, most = 0;
};
Spread spread(std::vector<double> values);
std::string text(const Spread& spread, int digits);  // "least / median / most"

// A folder of a model with SmolLM2-135M's shape (30 layers of 576, 9 heads on 3, 49152 tokens), without weights: the
// program draws them. The tokenizer is the story model's, so ids stay below 512; the arithmetic is that of the shape.
std::filesystem::path smol_shape(const std::filesystem::path& folder);
constexpr double smol_parameters = 134515008;
constexpr double smol_table = 28311552;  // of them: the table of tokens, which is the head too

// Text to read and to learn from, and the story model's tokenizer for a folder of a model.
std::filesystem::path prose();
void copy_tokenizer(const std::filesystem::path& model);

// What a training run with log_steps 1 wrote below `folder`, step by step.
struct TrainingStep {
  double step = 0, loss = 0, tokens_per_second = 0, teraflops = 0;
};
std::vector<TrainingStep> training_steps(const std::filesystem::path& folder);

// "--name value" among the program's arguments, else `otherwise`.
std::string argument(int count, char** values, const std::string& name, const std::string& otherwise);

// Lines with the machine's peaks, measured now.
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

// Start-up time of the program: start_bench [--runs 5]. `version` (no libtorch), the first token of the story
// model, and loading a saved model of SmolLM2-135M's shape, given by --model FOLDER.
#include <cstdio>

#include "measure.h"

namespace easydel::bench {
namespace {

void first_token(const std::string& what, const std::string& model, int runs) {
  std::vector<double> first, whole;
  double peak = 0;
  for (int run = 0; run < runs; ++run) {
    const Measured m =
        run_program({"generate", model, "--prompt", "Once upon a time", "--max-new-tokens", "1", "--temperature", "0"});
    first.push_back(m.first_output_seconds);
    whole.push_back(m.seconds);
    peak = std::max(peak, m.peak_mebibytes);
  }
  std::printf("%s: first token after %s s, end after %s s, peak %.0f MiB\n", what.c_str(),
              text(spread(first), 3).c_str(), text(spread(whole), 3).c_str(), peak);
}

int main_of(int count, char** values) {
  const int runs = std::stoi(argument(count, values, "runs", "5"));
  std::vector<double> version;
  for (int run = 0; run < runs; ++run) version.push_back(1e3 * run_program({"version"}).seconds);
  std::printf("version: %s ms (least / median / most)\n", text(spread(version), 1).c_str());
  first_token("story model, 1 MB", (source_root() / "tests/data/models/stories260K-hf").string(), runs);
  const std::string model = argument(count, values, "model", "");
  if (!model.empty()) first_token(model, model, runs);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}

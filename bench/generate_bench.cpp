// Generation speed of the whole program on SmolLM2-135M's shape: generate_bench [--dtype fp32|bf16] [--prompt 512]
// [--new 64] [--runs 3]. Prefill and decode are differences between runs that share everything else, so that start-up
// and loading cancel.
#include <cstdio>

#include "measure.h"

namespace easydel::bench {
namespace {

// A prompt of about `tokens` tokens of the story tokenizer.
std::string prompt_of(int tokens) {
  std::string text;
  for (int i = 0; i < tokens; ++i) text += " the";
  return text;
}

int main_of(int count, char** values) {
  const std::string dtype = argument(count, values, "dtype", "fp32");
  const int prompt = std::stoi(argument(count, values, "prompt", "512"));
  const int fresh = std::stoi(argument(count, values, "new", "64"));
  const int runs = std::stoi(argument(count, values, "runs", "3"));
  Scratch scratch;
  const std::string model = smol_shape(scratch / "smol135m").string();
  const auto seconds = [&](int prompt_tokens, int new_tokens) {
    return run_program({"generate", model, "--dtype", dtype, "--prompt", prompt_of(prompt_tokens), "--max-new-tokens",
                        std::to_string(new_tokens), "--temperature", "0", "--min-new-tokens",
                        std::to_string(new_tokens)})
        .seconds;
  };
  const Ceiling ceiling = measure_ceiling();
  std::printf("%s\n", describe(ceiling).c_str());
  std::vector<double> prefill, decode;
  for (int run = 0; run < runs; ++run) {
    const double start = seconds(1, 1), read = seconds(prompt, 1), wrote = seconds(1, fresh + 1);
    prefill.push_back((prompt - 1) / (read - start));
    decode.push_back(fresh / (wrote - start));
  }
  const double element = dtype == "fp32" ? 4 : 2;
  const double gflops = 2 * smol_parameters * spread(prefill).median * 1e-9;
  const double gbytes = element * smol_parameters * spread(decode).median * 1e-9;
  std::printf("prefill of %d tokens, %s: %s tokens/s; %.0f GFLOP/s, %.0f%% of the peak\n", prompt, dtype.c_str(),
              text(spread(prefill), 0).c_str(), gflops,
              100 * gflops / (dtype == "fp32" ? ceiling.fp32_gflops : ceiling.bf16_gflops));
  std::printf("decode, batch 1, %s: %s tokens/s; weights %.1f GB/s, %.0f%% of what memory gives\n", dtype.c_str(),
              text(spread(decode), 1).c_str(), gbytes, 100 * gbytes / ceiling.read_gbytes);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run that is cut short has said what it found
  return easydel::bench::main_of(count, values);
}

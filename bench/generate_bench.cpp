// Generation speed of the whole program on SmolLM2-135M's shape: generate_bench [--dtype fp32|bf16] [--prompt 512]
// [--new 64] [--runs 3], from the seconds that `generate --jsonl` tells. Each run first reads the prompt once unmeasured,
// so that weights are packed and pages are there.
#include <cstdio>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
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
  const Ceiling ceiling = measure_ceiling();
  std::printf("%s\n", describe(ceiling).c_str());
  std::vector<double> prefill, decode;
  for (int run = 0; run < runs; ++run) {
    const std::string new_tokens = std::to_string(fresh + 1);  // the first comes out of the prefill
    const Measured got = run_program({"generate", model, "--dtype", dtype, "--jsonl", "--batch", "1", "--prompt",
                                      prompt_of(prompt), "--prompt", prompt_of(prompt), "--max-new-tokens", new_tokens,
                                      "--temperature", "0", "--min-new-tokens", new_tokens});
    check(got.status == 0, "generate: ", got.err);
    const size_t second = got.out.find('\n') + 1;
    const Value line = parse_json(got.out.substr(second, got.out.find('\n', second) - second));
    const auto value = [&](const char* key) { return line.find(key)->as_double().value(); };
    prefill.push_back(value("prompt_tokens") / value("prefill_seconds"));
    decode.push_back(fresh / value("decode_seconds"));
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

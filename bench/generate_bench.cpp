// Generation speed of the whole program on SmolLM2-135M's shape: generate_bench [--dtype fp32|bf16|int8|nf4|q4]
// [--head codes|plain] [--context 512] [--new 64] [--runs 3] [--peer transformers|openvino|llama_cpp], from the seconds
// that `generate --jsonl` reports. Separate several contexts by commas. Each run first reads the prompt once without
// measuring, so that weights are packed and memory pages exist. A peer (see peer_generate.sh) then does the same work.
#include <cstdio>
#include <sstream>

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

// The format of weights: their dtype, or the codes of linear layers, with everything else in bf16. The head is
// quantized, too, unless --head plain.
struct Held {
  std::vector<std::string> flags;
  double bytes = 0;  // read for each token
  bool wide = false;
};
Held held(const std::string& dtype, bool plain_head) {
  if (dtype == "fp32" || dtype == "bf16")
    return {{"--dtype", dtype}, smol_parameters * (dtype == "fp32" ? 4 : 2), dtype == "fp32"};
  const std::string method = dtype == "int8" ? "a8bit" : dtype == "q4" ? "nf4" : dtype;
  std::vector<std::string> flags = {"--dtype", "bf16", "--set", "quantization.model.quantization_method=" + method};
  if (!plain_head) flags.insert(flags.end(), {"--set", "quantization.model.pattern=.*"});
  const double weight = dtype == "int8" ? 1 : 0.5 + 4.0 / 64, head = plain_head ? 2 : weight;
  return {flags, (smol_parameters - smol_table) * weight + smol_table * head, false};
}

struct Speeds {
  Spread prefill, decode;  // tokens a second
};

Speeds ours(const std::string& model, const Held& weights, int context, int fresh, int runs) {
  const std::string new_tokens = std::to_string(fresh + 1);  // the prefill gives the first one
  std::vector<double> prefill, decode;
  for (int run = 0; run < runs; ++run) {
    std::vector<std::string> command = {"generate",         model,
                                        "--random-weights", "--jsonl",
                                        "--batch",          "1",
                                        "--prompt",         prompt_of(context),
                                        "--prompt",         prompt_of(context),
                                        "--max-new-tokens", new_tokens,
                                        "--temperature",    "0",
                                        "--min-new-tokens", new_tokens};
    command.insert(command.end(), weights.flags.begin(), weights.flags.end());
    const Measured got = run_program(command);
    check(got.status == 0, "generate: ", got.err);
    const size_t second = got.out.find('\n') + 1;
    const Value line = parse_json(got.out.substr(second, got.out.find('\n', second) - second));
    const auto value = [&](const char* key) { return line.find(key)->as_double().value(); };
    prefill.push_back(value("prompt_tokens") / value("prefill_seconds"));
    decode.push_back(fresh / value("decode_seconds"));
  }
  return {spread(prefill), spread(decode)};
}

// The peer's median for `test` ("pp512": prefill; "tg64@512": decode); 0: none.
double said(const Measured& peer, const std::string& test) {
  std::istringstream lines(peer.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '{') continue;
    const Value record = parse_json(line);
    if (record.find("test")->scalar == test) return record.find("tok_s")->find("median")->as_double().value();
  }
  return 0;
}

int main_of(int count, char** values) {
  const std::string dtype = argument(count, values, "dtype", "fp32"), list = argument(count, values, "context", "512");
  const Held weights = held(dtype, argument(count, values, "head", "codes") == "plain");
  const int fresh = std::stoi(argument(count, values, "new", "64"));
  const int runs = std::stoi(argument(count, values, "runs", "3"));
  const std::string peer = argument(count, values, "peer", "");
  Scratch scratch;
  const std::string model = smol_shape(scratch / "smol135m").string();
  const Ceiling ceiling = measure_ceiling();
  std::printf("%s\n", describe(ceiling).c_str());
  const double element = weights.wide ? 4 : 2, peak = weights.wide ? ceiling.fp32_gflops : ceiling.bf16_gflops;
  std::vector<std::pair<int, Speeds>> all;
  std::istringstream contexts(list);
  for (std::string context; std::getline(contexts, context, ',');) {
    const int tokens = std::stoi(context);
    const Speeds s = ours(model, weights, tokens, fresh, runs);
    all.emplace_back(tokens, s);
    const double gflops = 2 * smol_parameters * s.prefill.median * 1e-9;
    // A token reads all weights, and the keys and values of the tokens before it: 30 layers of 3 heads of 64, twice.
    const double bytes = weights.bytes + element * 30.0 * 3 * 64 * 2 * (tokens + fresh / 2.0);
    const double gbytes = bytes * s.decode.median * 1e-9;
    std::printf("prefill of %d tokens, %s: %s tokens/s; %.0f GFLOP/s, %.0f%% of the peak\n", tokens, dtype.c_str(),
                text(s.prefill, 0).c_str(), gflops, 100 * gflops / peak);
    std::printf("decode at context %d, batch 1, %s: %s tokens/s; weights and cache %.1f GB/s, %.0f%% of reading\n",
                tokens, dtype.c_str(), text(s.decode, 1).c_str(), gbytes, 100 * gbytes / ceiling.read_gbytes);
  }
  if (all.size() > 1)
    std::printf("a step at context %d is %.2f of one at %d\n", all.back().first,
                all.front().second.decode.median / all.back().second.decode.median, all.front().first);
  if (peer.empty()) return 0;
  const Measured theirs = bench::run({(source_root() / "bench/peer_generate.sh").string(), peer, dtype, list,
                                      std::to_string(fresh), std::to_string(runs)});
  if (theirs.status != 0) {
    std::printf("%s: not run (%s)\n", peer.c_str(), theirs.err.c_str());
    return 1;
  }
  for (const auto& [tokens, s] : all) {
    const double prefill = said(theirs, str("pp", tokens)), decode = said(theirs, str("tg", fresh, "@", tokens));
    std::printf("%s at %d: prefill %.0f tokens/s, ratio %.2f; decode %.1f tokens/s, ratio %.2f\n", peer.c_str(), tokens,
                prefill, s.prefill.median / prefill, decode, s.decode.median / decode);
  }
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}

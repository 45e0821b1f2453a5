// Training speed and memory of the whole program on SmolLM2-135M's shape: train_bench [--dtype fp32|bf16] [--rows 2]
// [--length 512] [--steps 10] [--warmup 2] [--accumulation 1] [--checkpointing none] [--targets attn_output,mlp_up]
// [--peer yes|no]. With a Python with TRL (bench/peer_trl.sh), the peer runs the same shape in the same run.
#include <cstdio>
#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "measure.h"

namespace easydel::bench {
namespace {

struct Result {
  Spread tokens_per_second;
  double peak_mebibytes = 0, first_loss = 0, last_loss = 0;
  int64_t packings = 0;  // of whole weights, in the whole run
};

struct Kept {
  std::string policy, targets;
};

Result ours(const std::string& dtype, const Kept& kept, int rows, int length, int steps, int warmup, int accumulation) {
  Scratch scratch;
  const auto model = smol_shape(scratch / "smol135m");
  const auto yaml = scratch / "run.yaml";
  files::write(yaml,
               str("model: {name_or_path: ", model.string(), "}\n", "loader: {dtype: ", dtype, ", param_dtype: ", dtype,
                   "}\n", "base_config:\n  values:\n    gradient_checkpointing: ", kept.policy, "\n",
                   kept.targets.empty() ? "" : str("    gradient_checkpointing_targets: [", kept.targets, "]\n"),
                   "mixture:\n  informs: [{type: txt, data_files: ", prose().string(), "}]\n",
                   "  pack_tokens: true\n  pack_seq_length: ", length, "\n",
                   "trainer:\n  trainer_type: sft\n  packing_strategy: wrapped\n  learning_rate: 1.0e-4\n",
                   "  total_batch_size: ", rows, "\n  gradient_accumulation_steps: ", accumulation,
                   "\n  max_training_steps: ", steps + warmup,
                   "\n  log_steps: 1\n  report_steps: 1\n  clip_grad: 1.0\n  do_last_save: false\n  save_directory: ",
                   (scratch / "out").string(), "\n", "actions: [train]\n"));
  ::setenv("EASYDEL_LOG", "debug", 1);
  const Measured run = run_program({"elarge", yaml.string()});
  Result result;
  const size_t said = run.err.find(" weights were packed");
  if (said == std::string::npos) throw Bug("the run does not say how many weights it packed");
  result.packings = std::stoll(run.err.substr(run.err.find_last_of(" \n", said - 1) + 1));
  result.peak_mebibytes = run.peak_mebibytes;
  std::vector<double> speeds;
  for (const TrainingStep& step : training_steps(scratch / "out")) {
    result.last_loss = step.loss;
    if (step.step == 1) result.first_loss = step.loss;
    if (step.step > warmup) speeds.push_back(step.tokens_per_second);
  }
  result.tokens_per_second = spread(speeds);
  return result;
}

// Prints the figures of bench/peer_trl.sh, which returns one JSON line; prints nothing without a peer.
void peer(const std::string& mode, int rows, int length, int steps, int warmup, const Result& mine) {
  const Measured run = bench::run({(source_root() / "bench/peer_trl.sh").string(), mode, std::to_string(rows),
                                   std::to_string(length), std::to_string(steps), std::to_string(warmup)});
  const size_t begin = run.out.rfind("\n{");
  if (run.status != 0) {
    std::printf("TRL: not run (%s)\n", run.err.substr(0, run.err.find('\n')).c_str());
    return;
  }
  const Value record = parse_json(run.out.substr(begin == std::string::npos ? 0 : begin + 1));
  const auto number = [&](const char* name) { return record.find(name)->as_double().value(); };
  const double speed = number("tok_s_median"), memory = number("peak_rss_mib");
  std::printf("TRL %s, %s: %.0f / %.0f / %.0f tokens/s, peak %.0f MiB\n", record.find("trl")->scalar.c_str(),
              mode.c_str(), number("tok_s_min"), speed, number("tok_s_max"), memory);
  std::printf("ratio to TRL: speed %.2f, peak memory %.2f\n", mine.tokens_per_second.median / speed,
              mine.peak_mebibytes / memory);
}

int main_of(int count, char** values) {
  const std::string dtype = argument(count, values, "dtype", "fp32");
  const int rows = std::stoi(argument(count, values, "rows", "2"));
  const int length = std::stoi(argument(count, values, "length", "512"));
  const int steps = std::stoi(argument(count, values, "steps", "10"));
  const int warmup = std::stoi(argument(count, values, "warmup", "2"));
  const Kept kept{argument(count, values, "checkpointing", "none"), argument(count, values, "targets", "")};
  const Ceiling ceiling = measure_ceiling();
  std::printf("%s\n", describe(ceiling).c_str());
  const int accumulation = std::stoi(argument(count, values, "accumulation", "1"));
  const Result result = ours(dtype, kept, rows, length, steps, warmup, accumulation);
  // Six operations per parameter and token (two forward, four backward), without those of attention.
  const double gflops = 6 * smol_parameters * result.tokens_per_second.median * 1e-9;
  const double peak = dtype == "fp32" ? ceiling.fp32_gflops : ceiling.bf16_gflops;
  std::printf(
      "train SmolLM2-135M shape, %s, %d x %d, %d steps: %s tokens/s (least / median / most), peak %.0f MiB, "
      "checkpointing %s\n",
      dtype.c_str(), rows, length, steps, text(result.tokens_per_second, 0).c_str(), result.peak_mebibytes,
      kept.policy.c_str());
  std::printf("%.0f GFLOP/s, %.0f%% of the measured %s peak; loss %.3f -> %.3f\n", gflops, 100 * gflops / peak,
              dtype.c_str(), result.first_loss, result.last_loss);
  std::printf("%d micro-batches a step; %lld whole weights packed in %d steps\n", accumulation,
              static_cast<long long>(result.packings), steps + warmup);
  if (argument(count, values, "peer", "yes") == "no") return 0;
  // bf16-pure: weights and state in bf16. bf16-amp: autocast over fp32 masters and state, as in our program.
  for (const char* mode : dtype == "fp32" ? std::vector{"fp32"} : std::vector{"bf16-pure", "bf16-amp"})
    peer(mode, rows, length, steps, warmup, result);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}

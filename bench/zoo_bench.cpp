// A training step and a prefill with small models of five families, by the whole program and by transformers, in turns
// in one run: zoo_bench [--rounds 3] [--steps 3] [--only WORD]; WORD is part of a row's name. Initial weights are
// random. Without EASYDEL_PEER_PYTHON only our side is measured.
#include <cstdio>
#include <sstream>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/kernels/executor.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "measure.h"
#include "peer.h"

namespace easydel::bench {
namespace {

namespace fs = std::filesystem;

struct Family {
  const char *name, *config;
};

// Widths and their ratios are close to those of the family's published models; the depth is reduced.
const Family families[] = {
    {"llama", R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16384, "hidden_size": 768,
  "intermediate_size": 3072, "num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 3, "head_dim": 64,
  "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"qwen3", R"("architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 16384, "hidden_size": 768,
  "intermediate_size": 2304, "num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 6, "head_dim": 128,
  "max_position_embeddings": 2048, "rms_norm_eps": 1e-06, "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"gemma3", R"("architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 32768,
  "hidden_size": 640, "intermediate_size": 3840, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 1, "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 256,
  "max_position_embeddings": 2048, "rms_norm_eps": 1e-06, "hidden_activation": "gelu_pytorch_tanh",
  "tie_word_embeddings": true)"},
    {"mixtral",
     R"("architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "vocab_size": 8192, "hidden_size": 576,
  "intermediate_size": 2016, "num_hidden_layers": 6, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64,
  "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05,
  "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"mamba2",
     R"("architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "vocab_size": 16384, "hidden_size": 768,
  "num_hidden_layers": 8, "state_size": 128, "num_heads": 24, "head_dim": 64, "expand": 2, "n_groups": 1,
  "conv_kernel": 4, "chunk_size": 256, "layer_norm_epsilon": 1e-05, "tie_word_embeddings": true)"}};

constexpr int prompt_tokens = 512, rows = 2, length = 256;

fs::path write_model(const Family& family, const fs::path& folder) {
  fs::create_directories(folder);
  files::write(folder / "config.json", str("{", family.config, ", \"initializer_range\": 0.02, \"bos_token_id\": 1, ",
                                           "\"eos_token_id\": 2, \"pad_token_id\": 0}\n"));
  copy_tokenizer(folder);
  return folder;
}

// Every step except the first two.
std::vector<TrainingStep> training(const fs::path& model, const std::string& dtype, int steps) {
  constexpr int warmup = 2;
  Scratch scratch;
  const auto yaml = scratch / "run.yaml";
  files::write(yaml, str("model: {name_or_path: ", model.string(), "}\nloader: {dtype: ", dtype, ", param_dtype: ",
                         dtype, "}\nmixture:\n  informs: [{type: txt, data_files: ", prose().string(),
                         "}]\n  pack_tokens: true\n  pack_seq_length: ", length,
                         "\ntrainer:\n  trainer_type: sft\n  packing_strategy: wrapped\n  learning_rate: 1.0e-4\n",
                         "  total_batch_size: ", rows, "\n  max_training_steps: ", steps + warmup,
                         "\n  log_steps: 1\n  report_steps: 1\n  clip_grad: 1.0\n  do_last_save: false\n",
                         "  save_directory: ", (scratch / "out").string(), "\nactions: [train]\n"));
  run_program({"elarge", yaml.string()});
  std::vector<TrainingStep> out = training_steps(scratch / "out");
  std::erase_if(out, [](const TrainingStep& step) { return step.step <= warmup; });
  return out;
}

// So many tokens of prose, by the story tokenizer.
std::string prompt() {
  const auto tokenizer = text::Tokenizer::load(source_root() / "tests/data/models/stories260K-hf");
  std::vector<text::TokenId> ids =
      tokenizer->encode(files::read(prose()).substr(0, 8000), {.add_special_tokens = false});
  check(ids.size() >= prompt_tokens, "the prompt is short");
  ids.resize(prompt_tokens);
  return tokenizer->decode(ids);
}

// Seconds to prefill the prompt of 512 tokens.
double prefill(const fs::path& model, const std::string& dtype, const std::string& prompt) {
  const Measured got = run_program({"generate", model.string(), "--random-weights", "--dtype", dtype, "--jsonl",
                                    "--batch", "1", "--prompt", prompt, "--prompt", prompt, "--prompt", prompt,
                                    "--max-new-tokens", "1", "--temperature", "0"});
  // The third prompt, because weights are packed when they are used for the second time.
  const size_t end = got.out.rfind('\n'), begin = got.out.rfind('\n', end - 1) + 1;
  const Value line = parse_json(got.out.substr(begin, end - begin));
  const auto value = [&](const char* key) { return line.find(key)->as_double().value(); };
  return value("prefill_seconds") / value("prompt_tokens") * prompt_tokens;
}

// Requests to transformers, and its answers.
struct Side {
  std::string dtype;
  std::vector<double> seconds;
};

int main_of(int count, char** values) {
  const int rounds = std::stoi(argument(count, values, "rounds", "3"));
  const int steps = std::stoi(argument(count, values, "steps", "3"));
  const std::string only = argument(count, values, "only", "");
  const Ceiling ceiling = measure_ceiling();
  std::printf("%s\n", describe(ceiling).c_str());
  Scratch scratch;
  const std::string read = prompt();
  Peer peer("zoo_torch.py", {std::to_string(kernels::allowed_threads())});
  for (const Family& family : families)
    for (const std::string kind : {"training step", "prefill"})
      for (const std::string dtype : {"bf16", "fp32"}) {
        const std::string name = str(family.name, ", ", kind, ", ", dtype);
        if (name.find(only) == std::string::npos) continue;
        const fs::path model = write_model(family, scratch / family.name);
        const bool trains = kind == "training step";
        const std::string asked = str(" ", trains ? rows : 1, " ", trains ? length : prompt_tokens, " ",
                                      trains ? steps : 1, " ", model.string());
        // Our bf16 training step has fp32 masters and state. transformers is measured without them (less work; the
        // target refers to this), with them, and with autocast.
        std::vector<Side> sides = {{dtype, {}}};
        if (trains && dtype == "bf16") sides.insert(sides.end(), {{"masters", {}}, {"autocast", {}}});
        std::vector<double> ours;
        double at_peak = 0;  // tokens/s if a step consisted only of its products
        for (int round = 0; round < rounds; ++round) {
          if (trains) {
            for (const TrainingStep& step : training(model, dtype, steps)) {
              ours.push_back(rows * length / step.tokens_per_second);
              at_peak = step.tokens_per_second / step.teraflops / 1e3 *
                        (dtype == "bf16" ? ceiling.bf16_gflops : ceiling.fp32_gflops);
            }
          } else {
            ours.push_back(prefill(model, dtype, read));
          }
          if (!peer) continue;
          for (Side& side : sides) {
            const auto other = peer.numbers(str(trains ? "training " : "prefill ", side.dtype, asked));
            side.seconds.insert(side.seconds.end(), other.begin(), other.end());
          }
        }
        const auto rate = [](std::vector<double> seconds) {
          for (double& s : seconds) s = 512 / s;
          return spread(seconds);
        };
        std::printf("%-32s %s tokens/s", name.c_str(), text(rate(ours), 0).c_str());
        if (trains) std::printf(" (%.0f%% of its products at the peak)", 100 * rate(ours).median / at_peak);
        for (const Side& side : sides) {
          if (!peer) break;
          const double ratio = rate(ours).median / rate(side.seconds).median, least = dtype == "bf16" ? 1.5 : 1.1;
          std::printf("; transformers, %s %s: ratio %.2f, at least %.1f%s", side.dtype.c_str(),
                      text(rate(side.seconds), 0).c_str(), ratio, least, ratio < least ? " SHORT" : "");
        }
        std::printf("\n");
      }
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}

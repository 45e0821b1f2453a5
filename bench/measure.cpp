#include "measure.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/peak.h"

namespace easydel::bench {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

Measured run(const std::vector<std::string>& command) {
  int out[2], err[2];
  check(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "cannot make a pipe");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto begin = Clock::now();
  const pid_t child = fork();
  check(child >= 0, "cannot fork");
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Measured measured;
  pollfd from[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  while (from[0].fd >= 0 || from[1].fd >= 0) {
    if (poll(from, 2, -1) < 0) continue;
    for (int which : {0, 1}) {
      if (from[which].revents == 0) continue;
      char buffer[1 << 14];
      const ssize_t got = read(from[which].fd, buffer, sizeof buffer);
      if (got > 0) {
        if (which == 0 && measured.out.empty()) measured.first_output_seconds = since(begin);
        (which == 0 ? measured.out : measured.err).append(buffer, size_t(got));
      } else {
        close(from[which].fd);
        from[which].fd = -1;
      }
    }
  }
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  measured.seconds = since(begin);
  measured.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  measured.peak_mebibytes = double(usage.ru_maxrss) / 1024;
  return measured;
}

Measured run_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), EASYDEL_PROGRAM);
  Measured measured = run(arguments);
  if (measured.status != 0) {
    std::fprintf(stderr, "%s\n%s ended with %d\n", measured.err.c_str(), arguments[0].c_str(), measured.status);
    std::exit(1);
  }
  return measured;
}

Spread spread(std::vector<double> values) {
  check(!values.empty(), "nothing was measured");
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

std::string text(const Spread& s, int digits) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, "%.*f / %.*f / %.*f", digits, s.least, digits, s.median, digits, s.most);
  return buffer;
}

fs::path smol_shape(const fs::path& folder) {
  fs::create_directories(folder);
  files::write(folder / "config.json", R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
  "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
  "rope_theta": 100000.0, "hidden_act": "silu", "tie_word_embeddings": true, "initializer_range": 0.02,
  "attention_bias": false, "mlp_bias": false, "bos_token_id": 1, "eos_token_id": 2
}
)");
  copy_tokenizer(folder);
  return folder;
}

fs::path prose() { return source_root() / "tests/data/text/war_and_peace_book_one.txt"; }

void copy_tokenizer(const fs::path& model) {
  const fs::path story = source_root() / "tests/data/models/stories260K-hf";
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    files::write(model / name, files::read(story / name));
}

std::vector<TrainingStep> training_steps(const fs::path& folder) {
  const auto number = [](const Value& record, const std::string& name) {
    const Value* value = record.find(name);
    if (!value) value = record.find("train/" + name);
    check(value != nullptr && value->as_double(), "no '", name, "' in ", to_json(record));
    return *value->as_double();
  };
  std::vector<TrainingStep> steps;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "metrics.jsonl") continue;
    std::istringstream lines(files::read(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      const Value record = parse_json(line);
      steps.push_back({number(record, "step"), number(record, "loss"), number(record, "tokens_per_second"),
                       number(record, "teraflops")});
    }
  }
  return steps;
}

std::string argument(int count, char** values, const std::string& name, const std::string& otherwise) {
  for (int i = 1; i + 1 < count; ++i)
    if (values[i] == "--" + name) return values[i + 1];
  return otherwise;
}

Ceiling measure_ceiling() {
  const kernels::Peaks peaks = kernels::measure_peaks(kernels::openmp_executor());
  return {peaks.fp32_gflops, peaks.bf16_gflops, peaks.read_gigabytes};
}

std::string describe(const Ceiling& c) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer,
                "peaks measured now: fp32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, reading memory %.1f GB/s", c.fp32_gflops,
                c.bf16_gflops, c.read_gbytes);
  return buffer;
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "easydel_bench_XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "cannot make a folder in ", fs::temp_directory_path().string());
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path source_root() { return EASYDEL_SOURCE; }

}  // namespace easydel::bench

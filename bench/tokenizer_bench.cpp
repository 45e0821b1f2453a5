// Speed of tokenizers: tokenizer_bench [--tokenizer FILE] [--text FILE] [--reps 5]. Default: all byte-level and
// SentencePiece families of the shared data, on War and Peace and WikiText-2. MB = 1e6 bytes of UTF-8; seconds are CPU
// time, which other load affects little. With EASYDEL_PEER_PYTHON the `tokenizers` package runs the same (bench_tok.py
// of the peer scripts: EASYDEL_PEERS, else ../shared/peers).
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/tokenizers/batch.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "measure.h"

namespace easydel::bench {
namespace {

namespace fs = std::filesystem;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Work>
Spread rate(int reps, double megabytes, double (*clock)(), Work work) {
  std::vector<double> rates;
  for (int i = 0; i < reps; ++i) {
    double begin = clock();
    work();
    rates.push_back(megabytes / (clock() - begin));
  }
  return spread(rates);
}

std::vector<std::string_view> parts(std::string_view text, std::string_view between) {
  std::vector<std::string_view> out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(between, begin);
    std::string_view one = text.substr(begin, end - begin);
    if (one.find_first_not_of(" \n\r\t") != std::string_view::npos) out.push_back(one);
    if (end == std::string_view::npos) break;
    begin = end + between.size();
  }
  return out;
}

// WikiText has no empty lines.
std::vector<std::string_view> paragraphs(std::string_view text) {
  const auto out = parts(text, "\n\n");
  return out.size() < 100 ? parts(text, "\n") : out;
}

fs::path shared(const char* variable, const char* beside) {
  const char* value = std::getenv(variable);
  return value ? fs::path(value) : source_root() / ".." / "shared" / beside;
}

// The package's figures for the same file, and the ratio.
void peer(const fs::path& tokenizer, const fs::path& text, int reps, double ours_one, double ours_docs) {
  const char* python = std::getenv("EASYDEL_PEER_PYTHON");
  fs::path script = shared("EASYDEL_PEERS", "peers") / "bench_tok.py";
  if (!python || !fs::exists(script)) return;
  Measured run = bench::run({python, script.string(), "--tokenizer", tokenizer.string(), "--text", text.string(),
                             "--reps", std::to_string(reps), "--threads", "2"});
  if (run.status != 0) {
    std::printf("  tokenizers: failed: %s\n", run.err.c_str());
    return;
  }
  Value answer = parse_json(run.out);
  auto figure = [&](const char* key) { return answer.find(key)->find("per_cpu_s")->as_double().value_or(0); };
  double one = figure("one_cold"), docs = figure("docs_1t_warm");
  std::printf(
      "  tokenizers %s: one text %.2f MB/s (ours: %.1fx), paragraphs %.2f MB/s (ours: %.1fx), loads in %.0f ms\n",
      answer.find("tokenizers")->scalar.c_str(), one, ours_one / one, docs, ours_docs / docs,
      1e3 * answer.find("load_s")->as_double().value_or(0));
}

void adversarial(const text::Tokenizer& tokenizer, double prose) {
  struct Case {
    const char *name, *unit;
  };
  std::printf("  a megabyte of one thing, time per byte over prose's:");
  for (auto [name, unit] : std::initializer_list<Case>{{"letter", "a"},
                                                       {"space", " "},
                                                       {"mark", "\xCC\x81"},
                                                       {"digit", "7"},
                                                       {"newline", "\n"},
                                                       {"han", "\xE6\xB0\xB4"},
                                                       {"emoji", "\xF0\x9F\x99\x82"},
                                                       {"quote", "'"}}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    double times[2];
    for (double& time : times) {
      const double begin = cpu_seconds();
      tokenizer.encode(text);
      time = cpu_seconds() - begin;
    }
    const double of_prose = static_cast<double>(text.size()) / 1e6 / prose;
    std::printf(" %s %.2f", name, times[0] / of_prose);
    // Encode one long piece first, so that the tables for long pieces exist.
    if (name == std::string_view("letter")) std::printf(" (again %.2f)", times[1] / of_prose);
  }
  std::printf("\n");
}

void measure(const fs::path& file, const fs::path& text_file, int reps) {
  std::vector<double> loads;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  for (int i = 0; i < reps; ++i) {
    double begin = cpu_seconds();
    tokenizer = text::Tokenizer::load(file);
    loads.push_back(1e3 * (cpu_seconds() - begin));
  }
  std::string text = files::read(text_file);
  auto docs = paragraphs(text);
  double megabytes = static_cast<double>(text.size()) / 1e6, doc_bytes = 0;
  for (std::string_view doc : docs) doc_bytes += static_cast<double>(doc.size()) / 1e6;
  text::EncodeOptions plain{.add_special_tokens = false};
  size_t tokens = tokenizer->encode(text, plain).size();
  std::printf("%s on %s: loads in %s ms of CPU time, %zu tokens\n", file.parent_path().filename().c_str(),
              text_file.filename().c_str(), bench::text(spread(loads), 1).c_str(), tokens);
  Spread one = rate(reps, megabytes, cpu_seconds, [&] { tokenizer->encode(text, plain); });
  Spread each = rate(reps, doc_bytes, cpu_seconds, [&] {
    for (std::string_view doc : docs) tokenizer->encode(doc, plain);
  });
  std::printf("  one text %s MB/s, paragraphs %s MB/s\n", bench::text(one, 1).c_str(), bench::text(each, 1).c_str());
  for (unsigned threads : {1u, 2u}) {
    Spread batch = rate(reps, doc_bytes, wall_seconds, [&] { text::encode_batch(*tokenizer, docs, plain, threads); });
    std::printf("  batch over %u threads %s MB/s of wall time\n", threads, bench::text(batch, 1).c_str());
  }
  std::vector<text::TokenId> ids = tokenizer->encode(text, plain);
  Spread back = rate(reps, megabytes, cpu_seconds, [&] { tokenizer->decode(ids); });
  std::printf("  decode %s MB/s\n", bench::text(back, 1).c_str());
  adversarial(*tokenizer, one.median);
  peer(file, text_file, reps, one.median, each.median);
}

int main_of(int count, char** values) {
  const int reps = std::stoi(argument(count, values, "reps", "5"));
  fs::path data = shared("EASYDEL_SHARED_DATA", "data");
  std::vector<fs::path> tokenizers, texts;
  if (std::string one = argument(count, values, "tokenizer", ""); !one.empty())
    tokenizers = {one};
  else
    for (const char* name : {"llama3/tokenizer.json.gz", "qwen2/tokenizer.json.gz", "gpt2/tokenizer.json",
                             "gpt-neox/tokenizer.json", "falcon/tokenizer.json", "llama2/tokenizer.json",
                             "t5-small/tokenizer.json", "bert-base-uncased/tokenizer.json"})
      tokenizers.push_back(data / "tokenizers" / name);
  if (std::string one = argument(count, values, "text", ""); !one.empty())
    texts = {one};
  else
    texts = {data / "datasets/text/war_and_peace.txt", data / "datasets/text/wikitext2_valid.txt"};
  for (const fs::path& tokenizer : tokenizers)
    for (const fs::path& text : texts) measure(tokenizer, text, reps);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}

// docs/methods.md agrees with the table of methods, docs/differences.md and the recorded distances of replayed runs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <regex>

#include "architecture/source.h"
#include "easydel/base/document.h"
#include "easydel/base/names.h"
#include "easydel/train/method_configs.h"

namespace easydel::test {
namespace {

std::string short_number(const Value& value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value.as_double().value_or(0));
  return text;
}

// What the numbers of methods are held to that TRL has not, or of which no run was recorded.
constexpr std::pair<std::string_view, std::string_view> other_oracles[] = {
    {"agentic_moshpit", "its advantages by the written formulas (`tests/train/agentic_moshpit_test.cpp`)"},
    {"base", "runs of transformers' models and losses, to 1e-4 (`tests/train/own_task_test.cpp`)"},
    {"embedding", "runs of sentence-transformers, to 1e-4 (`tests/train/embedding_test.cpp`)"},
    {"gfpo", "its choice by the written formula (`tests/train/gfpo_test.cpp`); it learns as grpo"},
    {"on_policy_distillation", "it learns as distillation"},
    {"ray", "those of base"},
    {"rlvr", "its rewards by the written formulas (`tests/train/gfpo_test.cpp`); it learns as grpo"},
    {"sdpo", "a step by the written formula in fp64 (`tests/train/sdpo_test.cpp`)"},
    {"seq_kd", "it learns as sft"},
    {"sparse_distillation", "the written formula in fp64 (`tests/ops/head_divergence_test.cpp`)"},
};

// Groups of recorded runs of a method: its own name, and that with what follows an underscore ("dpo_trl024").
std::string goldens_of(const std::string& method, const Value& distances) {
  std::vector<std::string> out;
  for (const auto& [group, found] : distances.entries) {
    const std::string base = group.substr(0, group.find("_trl"));
    if (base != method) continue;
    out.push_back(group + ": " + found.find("cases")->scalar + " runs, loss " + short_number(*found.find("loss")) +
                  ", gradient norm " + short_number(*found.find("grad_norm")));
  }
  if (!out.empty()) return join(out, "; ");
  for (const auto& [name, oracle] : other_oracles)
    if (method == name) return "none of TRL; " + std::string(oracle);
  return "none";
}

std::string side_models(const train::MethodFacts& facts) {
  std::vector<std::string> out;
  const auto add = [&](const char* section, train::SideModelUse use) {
    if (use == train::SideModelUse::none) return;
    out.push_back(std::string("`") + section + (use == train::SideModelUse::required ? "`" : "` (may be given)"));
  };
  add("reference_model", facts.reference);
  add("teacher_model", facts.teacher);
  add("reward_model", facts.reward);
  return out.empty() ? "none" : join(out, ", ");
}

// The headings of docs/differences.md whose points name the method.
std::string differences_of(const std::string& method) {
  std::vector<std::string> out;
  const std::string text = read_file(source_root() / "docs/differences.md"), word = "`" + method + "`";
  for (size_t at = text.find("\n- **"); at != std::string::npos; at = text.find("\n- **", at + 1)) {
    // A point goes on in the lines that are indented.
    size_t end = text.find('\n', at + 1);
    while (text.compare(end, 3, "\n  ") == 0) end = text.find('\n', end + 1);
    const std::string point = text.substr(at + 5, end - at - 5);
    if (point.find(word) == std::string::npos) continue;
    std::string heading = point.substr(0, point.find("**"));
    for (char& c : heading)
      if (c == '\n') c = ' ';
    out.push_back(std::regex_replace(heading, std::regex(" +"), " "));
  }
  return out.empty() ? "none" : join(out, "; ");
}

std::string keys_of(const train::MethodConfig& method) {
  std::vector<std::string> out;
  for (const config::Key& key : method.section().keys) out.push_back("`" + key.name + "`");
  return join(out, " ");
}

std::string page() {
  const Value distances = parse_file(test_data("trl/distances.json"));
  std::string out =
      "# Training methods\n"
      "\n"
      "A test generates this page from the table of methods (`train/method_configs.h`) and from\n"
      "`tests/data/trl/distances.json`. [keys.md](keys.md) says what the keys mean, [row_formats.md](row_formats.md) "
      "what\n"
      "the rows look like, [differences.md](differences.md) what differs from EasyDeL and TRL.\n"
      "\n"
      "Goldens are runs recorded from TRL and repeated through the real trainer (`easydel probe replay`): their "
      "number, "
      "and\n"
      "the largest relative distance of a step's loss and of its gradient's norm. `scripts/golden_distances.py` "
      "measures "
      "them.\n";
  for (const train::MethodConfig& method : train::method_configs()) {
    const std::string name(method.name), rows = data::fields_of(method.facts.rows);
    out += "\n## " + name + "\n\n" + method.section().doc + "\n\n| | |\n|---|---|\n| rows | " +
           (rows.empty() ? "none" : rows) + " |\n| other models | " + side_models(method.facts) + " |\n| keys | " +
           keys_of(method) + " |\n| differs from EasyDeL or TRL | " + differences_of(name) + " |\n| goldens | " +
           goldens_of(name, distances) + " |\n";
  }
  return out;
}

TEST(MethodsPage, IsGeneratedFromTheTableOfMethods) {
  const fs::path file = source_root() / "docs/methods.md";
  const std::string written = page();
  if (std::getenv("EASYDEL_WRITE_PAGES")) write_file(file, written);
  EXPECT_EQ(read_file(file), written) << "EASYDEL_WRITE_PAGES=1 writes the page";
}

}  // namespace
}  // namespace easydel::test

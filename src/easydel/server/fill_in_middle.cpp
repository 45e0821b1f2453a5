#include "easydel/server/fill_in_middle.h"

#include <array>
#include <string_view>

namespace easydel::server {
namespace {

struct Names {
  std::string_view prefix, suffix, middle;
  bool suffix_first = false;
};

// As the models were trained: Qwen and CodeGemma, StarCoder and Granite, SantaCoder, DeepSeek, CodeLlama (both
// spellings), GLM, Seed, Codestral.
constexpr std::array known = {Names{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                              Names{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                              Names{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
                              Names{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
                              Names{"▁<PRE>", "▁<SUF>", "▁<MID>"},
                              Names{"<PRE>", "<SUF>", "<MID>"},
                              Names{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
                              Names{"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},
                              Names{"[PREFIX]", "[SUFFIX]", "", true}};

constexpr std::array<std::string_view, 12> end_names = {
    "<|fim_pad|>",   "<fim_pad>",   "<fim-pad>", "<|file_sep|>", "<file_sep>", "<|file_separator|>",
    "<|repo_name|>", "<repo_name>", "▁<EOT>",    "<EOT>",        "<|EOT|>",    "<|endoftext|>"};

}  // namespace

std::optional<MiddleTokens> middle_tokens(const text::Tokenizer& tokenizer) {
  for (const Names& names : known) {
    const auto prefix = tokenizer.id_of(names.prefix), suffix = tokenizer.id_of(names.suffix);
    const auto middle = names.middle.empty() ? std::nullopt : tokenizer.id_of(names.middle);
    if (!prefix || !suffix || (!names.middle.empty() && !middle)) continue;
    MiddleTokens out{.prefix = *prefix, .suffix = *suffix, .middle = middle, .suffix_first = names.suffix_first};
    out.ends = {out.prefix, out.suffix};
    if (middle) out.ends.push_back(*middle);
    for (const std::string_view name : end_names)
      if (const auto id = tokenizer.id_of(name)) out.ends.push_back(*id);
    return out;
  }
  return std::nullopt;
}

std::vector<text::TokenId> middle_prompt(const text::Tokenizer& tokenizer, const MiddleTokens& tokens,
                                         const std::vector<text::TokenId>& prefix, const std::string& suffix) {
  std::vector<text::TokenId> out;
  const std::vector<text::TokenId> of_nothing = tokenizer.encode("");
  if (!of_nothing.empty() && of_nothing.front() == tokenizer.bos_id()) out.push_back(of_nothing.front());
  const auto add = [&](text::TokenId mark, const std::vector<text::TokenId>& ids) {
    out.push_back(mark);
    out.insert(out.end(), ids.begin(), ids.end());
  };
  const std::vector<text::TokenId> after = tokenizer.encode(suffix, {.add_special_tokens = false});
  if (tokens.suffix_first) add(tokens.suffix, after);
  add(tokens.prefix, prefix);
  if (!tokens.suffix_first) add(tokens.suffix, after);
  if (tokens.middle) out.push_back(*tokens.middle);
  return out;
}

}  // namespace easydel::server

#include "easydel/cli/shown_example.h"

#include <algorithm>
#include <array>
#include <span>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::cli {
namespace {

enum class Look : uint8_t { learned, other, special, special_learned, cut };

struct Mark {
  std::string_view on, off;
};

Mark mark_of(Look look, Marks marks) {
  using enum Look;
  static constexpr std::string_view end = "\x1b[0m";
  static constexpr std::array colors{Mark{"\x1b[32m", end}, Mark{"\x1b[2m", end}, Mark{"\x1b[2;7m", end},
                                     Mark{"\x1b[32;7m", end}, Mark{"\x1b[31m", end}};
  static constexpr std::array brackets{Mark{"\u27e6", "\u27e7"}, Mark{}, Mark{}, Mark{"\u27e6", "\u27e7"},
                                       Mark{"\u27ea", "\u27eb"}};
  static constexpr std::array html{Mark{"<b>", "</b>"}, Mark{"<span>", "</span>"}, Mark{"<i>", "</i>"},
                                   Mark{"<b><i>", "</i></b>"}, Mark{"<del>", "</del>"}};
  return (marks == Marks::colors ? colors : marks == Marks::brackets ? brackets : html)[size_t(look)];
}

Look look_of(const ShownToken& token, const text::Tokenizer& tokenizer) {
  if (token.cut) return Look::cut;
  if (tokenizer.is_special(token.id)) return token.learned ? Look::special_learned : Look::special;
  return token.learned ? Look::learned : Look::other;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string shown_heading(const std::string& where, Marks marks) {
  if (marks == Marks::html) return "<h2>" + escaped(where) + "</h2>\n";
  const std::string line = "\u2500\u2500 " + where + " ";
  std::string rule;
  for (size_t width = where.size() + 4; width < 80; ++width) rule += "\u2500";
  return line + rule + "\n";
}

namespace {

// Where the kept tokens are in the whole sequence: a run of it, or its beginning and its end.
std::vector<uint8_t> kept_in(std::span<const int32_t> kept, std::span<const int32_t> whole) {
  std::vector<uint8_t> out(whole.size(), 0);
  const auto run = std::search(whole.begin(), whole.end(), kept.begin(), kept.end());
  if (run != whole.end() || kept.empty()) {
    std::fill_n(out.begin() + (run - whole.begin()), kept.size(), uint8_t{1});
    return out;
  }
  const size_t same = size_t(std::mismatch(kept.begin(), kept.end(), whole.begin(), whole.end()).first - kept.begin());
  std::fill_n(out.begin(), same, uint8_t{1});
  std::fill(out.end() - std::ptrdiff_t(kept.size() - same), out.end(), uint8_t{1});
  return out;
}

}  // namespace

std::vector<ShownSequence> shown_sequences(const data::Example& example, const std::vector<std::string>& where,
                                           const data::Example* whole, bool shifted) {
  const std::vector<int32_t> labels = example.unshifted_labels(shifted);
  const std::vector<float> weights = example.unshifted_weights(shifted);
  std::vector<ShownSequence> out;
  size_t begin = 0, whole_begin = 0;
  for (size_t s = 0; s < example.lengths.size(); ++s) {
    const auto length = size_t(example.lengths[s]);
    const std::span<const int32_t> kept(example.tokens.data() + begin, length);
    std::span<const int32_t> all = kept;
    if (whole && s < whole->lengths.size()) {
      all = std::span<const int32_t>(whole->tokens.data() + whole_begin, size_t(whole->lengths[s]));
      whole_begin += all.size();
    }
    ShownSequence& sequence = out.emplace_back();
    sequence.where = s < where.size() ? where[s] : "";
    const std::vector<uint8_t> is_kept = kept_in(kept, all);
    for (size_t i = 0, at = begin; i < all.size(); ++i) {
      const bool learned = is_kept[i] && labels[at] != data::no_label;
      sequence.tokens.push_back({all[i], learned, !is_kept[i], is_kept[i] ? weights[at] : 1});
      at += is_kept[i];
    }
    begin += length;
  }
  return out;
}

std::string shown_text(const std::vector<ShownSequence>& sequences, const text::Tokenizer& tokenizer, Marks marks) {
  std::string out;
  for (const ShownSequence& sequence : sequences) {
    out += shown_heading(sequence.where, marks) + (marks == Marks::html ? "<pre>" : "");
    std::vector<int32_t> ids;
    for (const ShownToken& token : sequence.tokens) ids.push_back(token.id);
    for (size_t i = 0; i < ids.size();) {
      const Look look = look_of(sequence.tokens[i], tokenizer);
      size_t end = i;
      const float weight = sequence.tokens[i].weight;
      while (end < ids.size() && look_of(sequence.tokens[end], tokenizer) == look &&
             sequence.tokens[end].weight == weight)
        ++end;
      const auto all = std::span<const int32_t>(ids);
      const std::string piece =
          text::decode_continuation(tokenizer, all.first(i), all.subspan(i, end - i), /*skip_special_tokens=*/false);
      const Mark mark = mark_of(look, marks);
      out += str(mark.on, marks == Marks::html ? escaped(piece) : piece, mark.off);
      if (weight != 1) out += str("\u00d7", double(weight));
      i = end;
    }
    out += marks == Marks::html ? "</pre>\n" : "\n";
  }
  return out;
}

std::string shown_lines(const std::vector<ShownSequence>& sequences, const text::Tokenizer& tokenizer) {
  std::string out;
  for (const ShownSequence& sequence : sequences) {
    out += "# " + sequence.where + "\n";
    std::vector<int32_t> before;
    for (const ShownToken& token : sequence.tokens) {
      const std::string text = text::decode_continuation(tokenizer, before, std::span(&token.id, 1), false);
      out += str(token.id, "\t", tokenizer.token_of(token.id), "\t", to_json(Value::text(text)), "\t",
                 token.cut       ? "cut"
                 : token.learned ? "learned"
                                 : "-",
                 token.weight == 1 ? std::string() : str("\t", double(token.weight)), "\n");
      before.push_back(token.id);
    }
  }
  return out;
}

std::string html_page(const std::string& body) {
  return "<!doctype html>\n<meta charset=\"utf-8\">\n<title>easydel data show</title>\n<style>\n"
         "pre { white-space: pre-wrap } h2 { font: 0.9em monospace; border-top: 1px solid }\n"
         "pre span { color: #888 } pre b { color: #080; font-weight: normal } pre i { background: #ddd; font-style: "
         "normal }\npre del { color: #c00; text-decoration: none }\n</style>\n<p>Learned tokens are <b>green</b>, "
         "others "
         "grey, special ones on a grey ground, those that truncation cuts off red.</p>\n" +
         body;
}

}  // namespace easydel::cli

// A training example as people look at it: its tokens with what becomes of each, as text for a terminal or a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/data/example.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::cli {

struct ShownToken {
  int32_t id = 0;
  bool learned = false;
  bool cut = false;  // truncation took it
  float weight = 1;  // in the loss
};

struct ShownSequence {
  std::string where;  // "train.jsonl:17"
  std::vector<ShownToken> tokens;
};

// `where`: of each sequence. `whole`: the same example before truncation, nullptr: nothing was cut. `shifted`: see
// Example::unshifted_labels.
std::vector<ShownSequence> shown_sequences(const data::Example& example, const std::vector<std::string>& where,
                                           const data::Example* whole, bool shifted);

// How runs of tokens are marked: by colors of a terminal, by brackets, or by HTML elements.
enum class Marks : uint8_t { colors, brackets, html };

// Text within HTML.
std::string escaped(const std::string& text);
// Where a sequence comes from, as a line above it.
std::string shown_heading(const std::string& where, Marks marks);
// The sequences one after the other, with where they come from and a rule between documents.
std::string shown_text(const std::vector<ShownSequence>& sequences, const text::Tokenizer& tokenizer, Marks marks);
// A line for each token: its id, the token in the vocabulary, the text it adds, and "learned", "-" or "cut".
std::string shown_lines(const std::vector<ShownSequence>& sequences, const text::Tokenizer& tokenizer);
// An HTML page around what shown_text made.
std::string html_page(const std::string& body);

}  // namespace easydel::cli

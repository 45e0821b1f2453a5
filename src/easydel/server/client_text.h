// Keeps special tokens that clients spell in conversations text: strings are marked before a chat template has them,
// and the marks say in the rendered text where no special token may be.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/prefix_trie.h"

namespace easydel::server {

class ClientText {
 public:
  // `special_texts`: of the tokenizer. `template_source`: the mark does not occur in it.
  ClientText(std::shared_ptr<const std::vector<std::string>> special_texts, const std::string& template_source);

  // Before mark(): a value of a client. The mark does not occur in any of them.
  void look_at(const Value& value);
  // Marks what spells special tokens in all strings of the value, and over the texts of a list of content parts, which
  // templates write one after the other. UserError: there is no character left that could be the mark.
  void mark(Value& value);
  // Takes the marks out of a rendered text. The places where they were, in bytes.
  std::vector<size_t> take_marks(std::string& text) const;

 private:
  void look_at(const std::string& text);
  void choose_mark();
  void mark_strings(const std::vector<std::string*>& strings);

  std::shared_ptr<const std::vector<std::string>> special_texts_;
  text::PrefixTrie special_;
  std::vector<bool> used_;           // by private-use character
  std::string mark_, escaped_mark_;  // escaped: as JSON may spell it
};

}  // namespace easydel::server

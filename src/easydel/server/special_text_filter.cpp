#include "easydel/server/special_text_filter.h"

namespace easydel::server {

std::vector<std::string> special_texts(const text::Tokenizer& tokenizer) {
  std::vector<std::string> out;
  for (text::TokenId id = 0; id < tokenizer.id_limit(); ++id)
    if (tokenizer.is_special(id)) out.push_back(tokenizer.token_of(id));
  std::erase(out, std::string());
  return out;
}

std::string SpecialTextFilter::feed(std::string_view text) {
  held_ += text;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    size_t longest = 0;
    bool may_become = false;
    for (const std::string& special : *texts_) {
      if (rest.starts_with(special)) longest = std::max(longest, special.size());
      may_become |= special.size() > rest.size() && special.starts_with(rest);
    }
    if (may_become) break;  // a longer special token's text may follow
    if (longest == 0) out += rest[0];
    at += std::max<size_t>(longest, 1);
  }
  held_.erase(0, at);
  return out;
}

}  // namespace easydel::server

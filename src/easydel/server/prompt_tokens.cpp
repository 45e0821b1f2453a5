#include "easydel/server/prompt_tokens.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/token_units.h"

namespace easydel::server {
namespace {

// {"id": {"logprob": ..., "rank": ..., "decoded_token": ...}}; the rank of a token beyond the most likely ones is not
// known.
std::string row_text(const text::Tokenizer* tokenizer, const esurge::TokenLogprobs& row, size_t most) {
  std::string out;
  for (size_t i = 0; i < row.token_ids.size(); ++i) {
    const bool ranked = i < most;
    if (!ranked && i != row.chosen) continue;
    const text::TokenId id = row.token_ids[i];
    out += str(out.empty() ? "" : ",", "\"", id, R"(":{"logprob":)", logprob_text(row.logprobs[i]), R"(,"rank":)",
               ranked || i == 0 ? std::to_string(i + 1) : "null", R"(,"decoded_token":)",
               tokenizer ? json_text(logprob_entry(*tokenizer, id, 0).token) : "null", "}");
  }
  return "{" + out + "}";
}

}  // namespace

std::string PromptTokens::members(std::span<const esurge::TokenLogprobs> rows) const {
  std::string out;
  if (shows_ids_) out += R"(,"prompt_token_ids":)" + id_list_text(ids_);
  if (!logprobs_ || (rows.empty() && ids_.size() > 1)) return out;
  std::string list = "null";  // nothing stands before the first token
  for (const esurge::TokenLogprobs& row : rows) list += "," + row_text(tokenizer_.get(), row, size_t(*logprobs_));
  return out + R"(,"prompt_logprobs":[)" + list + "]";
}

}  // namespace easydel::server

// A response as OpenAI's object and as its stream of events, byte for byte. Pure functions of what they are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/completion_json.h"
#include "easydel/server/responses_request.h"

namespace easydel::server {

struct ResponseHead {
  std::string id = {};  // "resp_..."
  int64_t created_at = 0;
  std::string model = {};
  bool stored = false;
  std::string request_fields = {};  // the members of the object that repeat the request
};
// The defaults are those that the answer was generated with.
struct ResponseDefaults {
  double temperature = 1, top_p = 1;
};
ResponseHead response_head(const ResponsesRequest& request, std::string model, int64_t created_at, bool stored,
                           const ResponseDefaults& defaults);

// Writes one response. Pieces come in the order in which the model wrote them; reasoning, text and each call become
// items. Without a stream its events are not used, and object() is the answer: so both are the same.
class ResponseWriter {
 public:
  // logprobs: content has log-probabilities.
  ResponseWriter(ResponseHead head, bool logprobs);

  std::string begin();
  std::string piece(const ChatPiece& piece);
  // After the last piece. `completed_at`: seconds since 1970. `token_members`: of the object, about its tokens
  // (single_answer.h).
  std::string end(const TokenUsage& usage, int64_t completed_at, const std::string& token_members = "");
  // The answer ends here. `cancelled`: because its client wanted that; what is there stays, and no error is shown.
  std::string fail(const ApiError& error, bool cancelled = false);

  std::string object() const;
  std::string output() const;  // its items, as a JSON list
  const ResponseHead& head() const { return head_; }

 private:
  struct Item {
    enum class Kind : uint8_t { reasoning, message, call } kind;
    std::string id, text;  // text: also the arguments of a call
    std::string call_id = {}, name = {};
    int64_t call_index = 0;
    std::vector<TokenLogprobEntry> logprobs = {};
    std::string_view status = "in_progress";
  };
  std::string event(std::string_view type, const std::string& members);
  std::string open(Item item);
  std::string close(std::string_view status);
  std::string part(const Item& item, bool empty) const;
  std::string item_json(const Item& item) const;
  std::string part_event(std::string_view type, size_t index, const std::string& members);
  std::string add_text(Item::Kind kind, const std::string& text, const std::vector<TokenLogprobEntry>& logprobs);
  std::string add_call(const ToolCallPiece& piece);
  Item* open_item() { return !items_.empty() && items_.back().status == "in_progress" ? &items_.back() : nullptr; }

  ResponseHead head_;
  bool logprobs_;
  std::vector<Item> items_;
  int64_t sequence_number_ = 0;
  std::string status_ = "in_progress", finish_reason_ = {}, error_ = "null", usage_ = "null", token_members_ = {};
  int64_t completed_at_ = 0;
};

}  // namespace easydel::server

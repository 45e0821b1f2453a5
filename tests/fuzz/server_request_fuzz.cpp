// Any bytes as a request to the server. The first byte says what they are: the head and body of HTTP, or the body of a
// route, which is read, becomes a request to answer a conversation, and is answered in that route's form.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/server/api_key.h"
#include "easydel/server/embedding_request.h"
#include "easydel/server/messages_json.h"
#include "easydel/server/messages_request.h"
#include "easydel/server/request_parser.h"
#include "easydel/server/response_store.h"
#include "easydel/server/responses_json.h"
#include "easydel/server/responses_request.h"
#include "easydel/server/routes.h"
#include "easydel/server/text_request.h"

namespace {

using namespace easydel;
using namespace easydel::server;

void require(bool good) {
  if (!good) std::abort();
}

// What a parser made of the bytes, fed `step` at a time.
std::string parsed(std::string_view bytes, size_t step) {
  RequestParser parser({.header_bytes = 4096, .header_fields = 16, .target_bytes = 512, .body_bytes = 4096});
  using State = RequestParser::State;
  const auto open = [&] { return parser.state() == State::head || parser.state() == State::body; };
  std::string out;
  while (!bytes.empty() && open()) {
    std::string_view piece = bytes.substr(0, step);
    while (!piece.empty() && open()) {
      const size_t taken = parser.feed(piece);
      piece.remove_prefix(taken);
      bytes.remove_prefix(taken);
    }
  }
  if (parser.state() == State::refused) {
    require(parser.refusal().status >= 400);
    return str(parser.refusal().status, parser.refusal().message);
  }
  if (parser.state() != State::done) return "incomplete";
  const HttpRequest request = parser.take();
  const RouteMatch match = match_route(request.method, request.path);
  require(!match.route || !match.allowed.empty());
  out = str(request.method, " ", request.path, "?", request.query, "|", request.body, "|", bytes.size());
  for (const Header& header : request.headers) out += str("|", header.name, "=", header.value);
  return out;
}

template <class T>
T read(const std::string& body) {
  std::vector<std::string> passed_over;
  return read_request<T>(read_value(body), {}, passed_over);
}

// The chat that a request became is one that chats accept.
void check_chat(const ChatRequest& chat) {
  config::Problems problems("");
  check_messages(chat.conversation.messages, "messages", problems);
  check_tools(chat.conversation.tools, "tools", problems);
  require(problems.empty());
}

// An answer with every kind of piece, cut as the bytes say.
std::vector<ChatPiece> pieces_of(std::string_view bytes) {
  std::vector<ChatPiece> out;
  int64_t calls = 0;
  for (size_t at = 0; at < std::min<size_t>(bytes.size(), 64); at += 4) {
    const std::string text(bytes.substr(at, 4));
    switch (uint8_t(text[0]) % 4) {
      case 0:
        out.push_back({.reasoning_content = text});
        break;
      case 1:
        out.push_back({.content = text});
        break;
      case 2:
        out.push_back({.tool_calls = {{calls++, "call_1", text, ""}, {calls - 1, "", "", "{}"}}});
        break;
      default:
        out.push_back({.content = text, .logprobs = {{{text, text, -1}, {}}}});
    }
  }
  out.push_back({.finish_reason = bytes.size() % 2 ? "length" : "stop"});
  return out;
}

// Every event is JSON, and a response's events are numbered.
void check_events(std::string_view events, bool numbered) {
  int64_t number = 0;
  while (!events.empty()) {
    const size_t end = events.find("\n\n");
    require(end != std::string_view::npos);
    const size_t data = events.find("data: ");
    require(data < end);
    const Value value = parse_json(events.substr(data + 6, end - data - 6));
    require(value.is_map() && value.find("type"));
    if (numbered) require(value.find("sequence_number")->as_int() == number++);
    events.remove_prefix(end + 2);
  }
}

void answer_response(const std::string& body) {
  const auto request = read<ResponsesRequest>(body);
  check_chat(chat_request_of(request, Value::list()));
  ResponseWriter writer(response_head(request, "m", 1, true, {}), request.fields.wants_logprobs());
  std::string events = writer.begin();
  for (const ChatPiece& piece : pieces_of(body)) events += writer.piece(piece);
  events += writer.end({}, 2);
  check_events(events, true);
  parse_json(writer.object());
  ResponseStore store;
  StoredResponse stored{.id = "r", .object = writer.object(), .output = writer.output()};
  stored.input = items_with_ids(input_items(request.fields.input));
  input_items_page(stored, 3, false, "");
  store.put(stored);
  check_chat(chat_request_of(request, store.history("r", "")));
}

void answer_message(const std::string& body) {
  const auto request = read<MessagesRequest>(body);
  check_chat(chat_request_of(request));
  MessageWriter writer("msg_1", "m");
  std::string events = writer.begin({});
  for (const ChatPiece& piece : pieces_of(body)) events += writer.piece(piece);
  check_events(events + writer.end({}), false);
  parse_json(writer.object());
}

void read_body_of(uint8_t route, const std::string& body) {
  switch (route % 11) {
    case 0:
      return answer_response(body);
    case 1:
      return answer_message(body);
    case 2:
      return check_chat(read<ChatRequest>(body));
    case 3: {
      TokenLists tokens;
      std::vector<std::string> passed_over;
      read_request<TextRequest>(read_value(body, "prompt", tokens), {}, passed_over);
      return;
    }
    case 4:
      return void(read<TokenizeRequest>(body));
    case 5:
      return void(read<EmbeddingsRequest>(body));
    case 6:
      return void(read<RerankRequest>(body).texts());
    case 7:
      return void(read<ScoreRequest>(body).pairs());
    case 8:
      return void(read<ClassifyRequest>(body));
    case 9:
      return check_chat(chat_request_of(read<MessagesFields>(body)));
    default:
      return void(read<KeySettings>(body));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 12 == 11) {
    const std::string whole = parsed(bytes, bytes.size());
    require(parsed(bytes, 1) == whole);
    require(parsed(bytes, 1 + data[1] % 5) == whole);
    return 0;
  }
  try {
    read_body_of(data[0] % 12, std::string(bytes));
  } catch (const UserError&) {
  }
  return 0;
}

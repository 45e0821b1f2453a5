// POST /v1/embeddings, /v1/rerank, /v1/score and /v1/classify.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/server/embedding_json.h"
#include "easydel/server/embedding_request.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/request_fields.h"
#include "easydel/server/route_context.h"
#include "easydel/text/tokenizers/cut_encoding.h"

namespace easydel::server {
namespace {

// Cuts the ends of the texts, until there are `most` tokens; what the tokenizer adds stays.
EncodedText truncated(const text::Encoding& encoding, int64_t most, const std::string& path) {
  std::optional<text::Encoding> cut = text::cut_encoding(encoding, most);
  if (!cut)
    refuse("truncate_prompt_tokens",
           str("is not more than the ", text::added_tokens(encoding), " tokens that the tokenizer adds to ", path),
           "raise it");
  return {std::move(cut->ids), std::move(cut->type_ids)};
}

// What all four routes do with texts.
class Encoding {
 public:
  Encoding(const RouteContext& context, const Api& api, std::shared_ptr<Call> call,
           const std::optional<std::string>& name, std::optional<int64_t> max_tokens)
      : context_(context),
        call_(std::move(call)),
        model_(model_for(context, api, *call_, name)),
        max_tokens_(max_tokens) {
    if (!model_->encoder)
      refuse("model", str("'", model_->id, "' generates text, and has neither embeddings nor classes"),
             "use /v1/chat/completions or /v1/completions");
    call_->record.model = model_->id;
  }

  const ServedModel& model() const { return *model_; }
  const ServedEncoder& encoder() const { return *model_->encoder; }
  int64_t tokens() const { return tokens_; }

  void need(bool classes) const {
    if (encoder().classifies == classes) return;
    if (classes) refuse("model", str("'", model_->id, "' makes embeddings, and has no classes"), "use /v1/embeddings");
    refuse("model", str("'", model_->id, "' classifies texts, and has no embeddings"), "use /v1/classify");
  }
  void add_text(const std::string& text, const std::string& path, const std::optional<std::string>& pair = {}) {
    if (!model_->tokenizer)
      refuse(path, str("'", model_->id, "' has no tokenizer, so it takes no text"), "send token ids");
    text::Encoding encoded = model_->tokenizer->encode_full(encoder().prompt + text, pair);
    const bool is_long = max_tokens_ && int64_t(encoded.ids.size()) > *max_tokens_;
    EncodedText out = is_long ? truncated(encoded, *max_tokens_, path)
                              : EncodedText{std::move(encoded.ids), std::move(encoded.type_ids)};
    if (!encoder().pools_prompt) out.prompt_tokens = prompt_tokens();
    add(std::move(out), path);
  }
  void add_ids(const std::vector<int32_t>& ids, const std::string& path) {
    for (const int32_t id : ids)
      if (id < 0 || id >= encoder().vocabulary)
        refuse(path, str("has the token id ", id, "; the model's vocabulary has ", encoder().vocabulary));
    const auto kept = int64_t(std::min(ids.size(), size_t(max_tokens_.value_or(INT64_MAX))));
    add({{ids.begin(), ids.begin() + kept}, {}}, path);
  }
  // `input` of a body: texts, or the ids that were read before.
  void add_input(const Value& input, const TokenLists& lists) {
    for (size_t i = 0; i < lists.lists.size(); ++i) add_ids(lists.lists[i], str("input[", i, "]"));
    if (input.is_null()) return;
    const std::vector<std::string> texts = texts_of(input);
    for (size_t i = 0; i < texts.size(); ++i) add_text(texts[i], input.is_list() ? str("input[", i, "]") : "input");
  }

  // `answer`: makes the body of the answer of a row for each text.
  void start(std::function<std::string(std::vector<Vector> rows)> answer) {
    call_->record.prompt_tokens = tokens_;
    context_.jobs.count_tokens(*call_, tokens_);
    for (const EncodedText& text : texts_) context_.jobs.note_prompt(*call_, *model_, text.ids);
    context_.encodes.add({std::move(call_), std::move(model_), std::move(texts_),
                          [answer = std::move(answer)](Call& call, std::vector<Vector> rows) {
                            call.respond_json(200, answer(std::move(rows)));
                          }});
  }

  CompletionHead head(std::string_view prefix) const {
    return {.id = new_completion_id(prefix), .created = seconds_since_1970(), .model = model_->id};
  }

 private:
  // Of the prompt with what the tokenizer puts before it, as sentence-transformers counts them: what the tokenizer puts
  // after it stands after the whole text.
  int64_t prompt_tokens() {
    if (prompt_tokens_) return *prompt_tokens_;
    const std::vector<text::TokenId> ids = model_->tokenizer->encode_full(encoder().prompt, std::nullopt).ids;
    prompt_tokens_ = std::ssize(ids) - (!ids.empty() && model_->tokenizer->is_special(ids.back()));
    return *prompt_tokens_;
  }
  void add(EncodedText text, const std::string& path) {
    if (text.ids.empty()) refuse(path, "has no tokens", "give a text");
    if (model_->max_model_len > 0 && int64_t(text.ids.size()) > model_->max_model_len)
      throw Refusal({.status = 400,
                     .message = str(path, ": has ", text.ids.size(), " tokens; the model takes ", model_->max_model_len,
                                    " (shorten it, or set truncate_prompt_tokens)"),
                     .code = "context_length_exceeded",
                     .param = path});
    tokens_ += int64_t(text.ids.size());
    texts_.push_back(std::move(text));
  }

  const RouteContext& context_;
  std::shared_ptr<Call> call_;
  std::shared_ptr<const ServedModel> model_;
  std::optional<int64_t> max_tokens_;
  std::vector<EncodedText> texts_;
  int64_t tokens_ = 0;
  std::optional<int64_t> prompt_tokens_;
};

template <config::Sectioned T>
T read_encoding(const RouteContext& context, Call& call, TokenLists* lists = nullptr) {
  Value value = lists ? call.body("input", *lists) : call.body();
  RequestRules rules = rules_of(context.config);
  const Value* const input = value.find("input");
  if (lists && lists->lists.empty() && (!input || input->is_null()))
    rules.missing.push_back({"input", {}, "is missing", "give a text, token ids, or a list"});
  if (lists && lists->lists.size() > max_encoded_texts)
    rules.found.push_back({"input", {}, str("has more than ", max_encoded_texts, " texts"), "send several requests"});
  return read_fields<T>(call, std::move(value), rules);
}

using Texts = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// Scores of pairs: of a classifier with one class from both texts, otherwise the cosine of their embeddings.
void score_pairs(Encoding& encoding, const Pairs& pairs, const char* first, const char* second,
                 std::function<std::string(const std::vector<double>& scores, int64_t tokens)> answer) {
  const ServedEncoder& encoder = encoding.encoder();
  if (encoder.classifies) {
    if (encoder.labels.size() != 1)
      refuse("model", str("'", encoding.model().id, "' has ", encoder.labels.size(), " classes; a score needs one"),
             "use /v1/classify");
    for (size_t i = 0; i < pairs.size(); ++i)
      encoding.add_text(pairs[i].first, str(second, "[", i, "]"), pairs[i].second);
    return encoding.start([activation = encoder.pair_activation, tokens = encoding.tokens(),
                           answer = std::move(answer)](const std::vector<Vector>& rows) {
      std::vector<double> scores;
      for (const Vector& row : rows) scores.push_back(activation(row[0]));
      return answer(scores, tokens);
    });
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    encoding.add_text(pairs[i].first, str(first, "[", i, "]"));
    encoding.add_text(pairs[i].second, str(second, "[", i, "]"));
  }
  encoding.start([tokens = encoding.tokens(), answer = std::move(answer)](const std::vector<Vector>& rows) {
    std::vector<double> scores;
    for (size_t i = 0; i + 1 < rows.size(); i += 2) scores.push_back(cosine(rows[i], rows[i + 1]));
    return answer(scores, tokens);
  });
}

void check_dimensions(const ServedEncoder& encoder, int64_t dimensions) {
  if (!encoder.dimensions)
    refuse("dimensions", "the model's config.json does not say that its embeddings can be cut",
           "leave it out, or set matryoshka_dimensions in config.json");
  const std::vector<int64_t>& may = *encoder.dimensions;
  if (!may.empty() && std::ranges::find(may, dimensions) == may.end()) {
    Texts names;
    for (const int64_t one : may) names.push_back(std::to_string(one));
    refuse("dimensions", str(dimensions, " is not a length of the model's embeddings"), "one of " + join(names, ", "));
  }
}

void answer_embeddings(const RouteContext& context, const Api& api, std::shared_ptr<Call> call) {
  TokenLists lists;
  const auto request = read_encoding<EmbeddingsRequest>(context, *call, &lists);
  Encoding encoding(context, api, std::move(call), request.model, request.truncate_prompt_tokens);
  encoding.need(false);
  if (request.dimensions) check_dimensions(encoding.encoder(), *request.dimensions);
  encoding.add_input(request.input, lists);
  encoding.start([id = encoding.model().id, tokens = encoding.tokens(), dimensions = request.dimensions,
                  as_base64 = request.encoding_format == "base64"](std::vector<Vector> rows) {
    if (dimensions && *dimensions > int64_t(rows[0].size()))
      refuse("dimensions", str(*dimensions, " is more than the model's ", rows[0].size()), "lower it");
    if (dimensions)
      for (Vector& one : rows) one = cut_embedding(one, *dimensions);
    return embeddings_answer(id, rows, as_base64, tokens);
  });
}

void answer_rerank(const RouteContext& context, const Api& api, std::shared_ptr<Call> call) {
  const auto request = read_encoding<RerankRequest>(context, *call);
  Encoding encoding(context, api, std::move(call), request.model, request.truncate_prompt_tokens);
  const Texts documents = request.texts();
  Pairs pairs;
  for (const std::string& document : documents) pairs.emplace_back(request.query.scalar, document);
  score_pairs(encoding, pairs, "query", "documents",
              [head = encoding.head("rerank-"), documents, top_n = request.top_n.value_or(INT64_MAX),
               with_text = request.return_documents.value_or(true)](const std::vector<double>& scores, int64_t tokens) {
                std::vector<RankedDocument> ranked;
                for (size_t i = 0; i < scores.size(); ++i) ranked.push_back({int64_t(i), scores[i], documents[i]});
                return rerank_answer(head, std::move(ranked), top_n, with_text, tokens);
              });
}

void answer_score(const RouteContext& context, const Api& api, std::shared_ptr<Call> call) {
  const auto request = read_encoding<ScoreRequest>(context, *call);
  Encoding encoding(context, api, std::move(call), request.model, request.truncate_prompt_tokens);
  score_pairs(encoding, request.pairs(), "text_1", "text_2",
              [head = encoding.head("score-")](const std::vector<double>& scores, int64_t tokens) {
                return score_answer(head, scores, tokens);
              });
}

void answer_classify(const RouteContext& context, const Api& api, std::shared_ptr<Call> call) {
  TokenLists lists;
  const auto request = read_encoding<ClassifyRequest>(context, *call, &lists);
  Encoding encoding(context, api, std::move(call), request.model, request.truncate_prompt_tokens);
  encoding.need(true);
  encoding.add_input(request.input, lists);
  encoding.start([head = encoding.head("classify-"), tokens = encoding.tokens(),
                  activation = encoding.encoder().class_activation,
                  labels = encoding.encoder().labels](std::vector<Vector> rows) {
    for (Vector& scores : rows) scores = activated(scores, activation);
    return classify_answer(head, rows, labels, tokens);
  });
}

}  // namespace

void add_embedding_routes(Api& api, const RouteContext& context) {
  const auto serve = [&](const char* route, auto answer) {
    api.serve(route, [&api, context, answer](std::shared_ptr<Call> call) { answer(context, api, std::move(call)); });
  };
  serve("POST /v1/embeddings", answer_embeddings);
  serve("POST /v1/rerank", answer_rerank);
  serve("POST /v1/score", answer_score);
  serve("POST /v1/classify", answer_classify);
}

}  // namespace easydel::server

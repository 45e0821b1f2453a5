#include "easydel/server/embedding_request.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/server/request_checker.h"

namespace easydel::server {
namespace {

void check_texts(const Value& value, std::string_view name, config::Keys& keys) {
  if (value.is_text()) return;
  if (!value.is_list() || value.items.empty())
    return keys.refuse(name, config::shown(value) + " is not a text or a list of texts");
  if (value.items.size() > max_encoded_texts)
    return keys.refuse(name, str("has more than ", max_encoded_texts, " texts"), "send several requests");
  for (size_t i = 0; i < value.items.size(); ++i)
    if (!value.items[i].is_text())
      keys.refuse(str(name, "[", i, "]"), config::shown(value.items[i]) + " is not a string");
}

}  // namespace

std::vector<std::string> texts_of(const Value& value) {
  if (value.is_text()) return {value.scalar};
  std::vector<std::string> out;
  for (const Value& item : value.items) out.push_back(item.is_map() ? text_of(item, "text") : item.scalar);
  return out;
}

void EmbeddingsRequest::settle(config::Keys& keys) {
  if (!input.is_null()) check_texts(input, "input", keys);
  if (encoding_format != "float" && encoding_format != "base64")
    keys.refuse("encoding_format", "'" + encoding_format + "' is not float or base64");
}

void ClassifyRequest::settle(config::Keys& keys) {
  if (!input.is_null()) check_texts(input, "input", keys);
}

void RerankRequest::settle(config::Keys& keys) {
  if (!query.is_text()) keys.refuse("query", config::shown(query) + " is not a string");
  if (!documents.is_list() || documents.items.empty())
    return keys.refuse("documents", config::shown(documents) + " is not a list of documents");
  if (documents.items.size() > max_encoded_texts)
    return keys.refuse("documents", str("has more than ", max_encoded_texts, " documents"), "send several requests");
  for (size_t i = 0; i < documents.items.size(); ++i) {
    const Value& document = documents.items[i];
    const Value* const text = member(document, "text");
    if (!document.is_text() && !(text && text->is_text()))
      keys.refuse(str("documents[", i, "]"), "is not a string, or an object with text");
  }
}

std::vector<std::string> RerankRequest::texts() const { return texts_of(documents); }

void ScoreRequest::settle(config::Keys& keys) {
  check_texts(text_1, "text_1", keys);
  check_texts(text_2, "text_2", keys);
  if (text_1.is_list() &&
      (!text_2.is_list() || (text_1.items.size() > 1 && text_1.items.size() != text_2.items.size())))
    keys.refuse("text_2", "has another number of texts than text_1", "give as many, or one text as text_1");
}

std::vector<std::pair<std::string, std::string>> ScoreRequest::pairs() const {
  const std::vector<std::string> first = texts_of(text_1), second = texts_of(text_2);
  std::vector<std::pair<std::string, std::string>> out;
  for (size_t i = 0; i < second.size(); ++i) out.emplace_back(first[first.size() == 1 ? 0 : i], second[i]);
  return out;
}

}  // namespace easydel::server

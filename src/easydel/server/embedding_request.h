// The bodies of /v1/embeddings, /v1/rerank, /v1/score and /v1/classify.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/server/json_body.h"

namespace easydel::server {

constexpr size_t max_encoded_texts = 2048;  // of one request

struct EmbeddingsRequest {
  std::optional<std::string> model = {}, user = {};
  Value input = {};  // a text or a list of texts; null: token ids, which are read before (read_value with a key)
  std::string encoding_format = "float";
  std::optional<int64_t> dimensions = {}, truncate_prompt_tokens = {};

  static constexpr auto doc = "Texts whose embeddings are wanted.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model; null: the only one."),
        field<&C::input>("Text, token ids, or a list of either; at most 2048."),
        field<&C::encoding_format>("float, or base64 of little-endian 32-bit floats."),
        field<&C::dimensions>("Cut embeddings to this many numbers, and scale them to length 1.", at_least(1)),
        field<&C::truncate_prompt_tokens>("Keep only this many tokens of a text, its first ones.", at_least(1)),
        field<&C::user>("A name for the client's own user."),
    };
  }
  void settle(config::Keys& keys);
};

struct RerankRequest {
  std::optional<std::string> model = {};
  Value query = {}, documents = {};
  std::optional<int64_t> top_n = {}, truncate_prompt_tokens = {};
  std::optional<bool> return_documents = {};

  static constexpr auto doc = "Documents to order by their relevance to a query, as Jina and Cohere have it.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model; null: the only one."),
        field<&C::query>("The query.", required()),
        field<&C::documents>("The documents: texts, or objects with text; at most 2048.", required()),
        field<&C::top_n>("Return only this many, the best ones.", at_least(1)),
        field<&C::return_documents>("Return the documents' texts; null: yes."),
        field<&C::truncate_prompt_tokens>("Keep only this many tokens of a text, its first ones.", at_least(1)),
    };
  }
  void settle(config::Keys& keys);
  std::vector<std::string> texts() const;  // of the documents
};

struct ScoreRequest {
  std::optional<std::string> model = {};
  Value text_1 = {}, text_2 = {};
  std::optional<int64_t> truncate_prompt_tokens = {};

  static constexpr auto doc = "Pairs of texts to score.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model; null: the only one."),
        field<&C::text_1>("A text, or a list of texts.", required(), alias("queries")),
        field<&C::text_2>("A text, or a list: as long as text_1, unless that is one text.", required(),
                          alias("documents")),
        field<&C::truncate_prompt_tokens>("Keep only this many tokens of a text, its first ones.", at_least(1)),
    };
  }
  void settle(config::Keys& keys);
  std::vector<std::pair<std::string, std::string>> pairs() const;
};

struct ClassifyRequest {
  std::optional<std::string> model = {}, user = {};
  Value input = {};
  std::optional<int64_t> truncate_prompt_tokens = {};

  static constexpr auto doc = "Texts to classify.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model; null: the only one."),
        field<&C::input>("Text, token ids, or a list of either; at most 2048."),
        field<&C::truncate_prompt_tokens>("Keep only this many tokens of a text, its first ones.", at_least(1)),
        field<&C::user>("A name for the client's own user."),
    };
  }
  void settle(config::Keys& keys);
};

// A text or a list of texts as a list.
std::vector<std::string> texts_of(const Value& value);

}  // namespace easydel::server

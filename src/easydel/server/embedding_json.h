// Embeddings, scores and classes as answers, byte for byte, and the arithmetic between a model's numbers and them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/server/completion_json.h"

namespace easydel::server {

using Vector = std::vector<float>;

// The first `dimensions` numbers, scaled to length 1.
Vector cut_embedding(const Vector& embedding, int64_t dimensions);
double cosine(const Vector& a, const Vector& b);  // 0 if one of them is 0
// What becomes of scores of classes: nothing, each by itself between 0 and 1, or probabilities that add up to 1.
enum class ClassActivation : uint8_t { identity, sigmoid, softmax };
Vector activated(const Vector& scores, ClassActivation activation);
std::string base64(std::string_view bytes);

// base64: of little-endian floats.
std::string embeddings_answer(const std::string& model, const std::vector<Vector>& embeddings, bool as_base64,
                              int64_t prompt_tokens);

struct RankedDocument {
  int64_t index = 0;  // in the request
  double score = 0;
  std::string text = {};
};
// The best ones first; equal ones in the order of the request. `with_text`: the documents are returned, too.
std::string rerank_answer(const CompletionHead& head, std::vector<RankedDocument> documents, int64_t top_n,
                          bool with_text, int64_t prompt_tokens);
std::string score_answer(const CompletionHead& head, const std::vector<double>& scores, int64_t prompt_tokens);
// `labels`: of the classes; those without one are called LABEL_0 and so on, as in transformers.
std::string classify_answer(const CompletionHead& head, const std::vector<Vector>& classes,
                            const std::vector<std::string>& labels, int64_t prompt_tokens);

}  // namespace easydel::server

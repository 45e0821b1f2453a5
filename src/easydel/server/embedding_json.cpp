#include "easydel/server/embedding_json.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/json_text.h"

namespace easydel::server {
namespace {

// The shortest text that reads back as the same float; JSON has no other numbers.
std::string float_text(float number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), result.ptr};
}

std::string float_list(const Vector& numbers) {
  std::string out;
  for (const float number : numbers) out += (out.empty() ? "" : ",") + float_text(number);
  return "[" + out + "]";
}

std::string encoder_usage(int64_t prompt_tokens) {
  return str(R"("usage":{"prompt_tokens":)", prompt_tokens, R"(,"total_tokens":)", prompt_tokens,
             R"(,"completion_tokens":0})");
}

std::string list_head(const CompletionHead& head) {
  return str(R"({"id":)", json_text(head.id), R"(,"object":"list","created":)", head.created, R"(,"model":)",
             json_text(head.model));
}

std::string number_text(double number) { return std::isfinite(number) ? Value::number(number).scalar : "null"; }

}  // namespace

Vector cut_embedding(const Vector& embedding, int64_t dimensions) {
  Vector out(embedding.begin(), embedding.begin() + std::min<int64_t>(dimensions, int64_t(embedding.size())));
  double squares = 0;
  for (const float number : out) squares += double(number) * number;
  if (squares == 0) return out;
  const double scale = 1 / std::sqrt(squares);
  for (float& number : out) number = float(number * scale);
  return out;
}

double cosine(const Vector& a, const Vector& b) {
  check(a.size() == b.size(), "cosine of ", a.size(), " and ", b.size(), " numbers");
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double(a[i]) * b[i];
    of_a += double(a[i]) * a[i];
    of_b += double(b[i]) * b[i];
  }
  return of_a == 0 || of_b == 0 ? 0 : product / std::sqrt(of_a * of_b);
}

Vector activated(const Vector& scores, ClassActivation activation) {
  Vector out = scores;
  if (activation == ClassActivation::sigmoid)
    for (float& score : out) score = float(1 / (1 + std::exp(-double(score))));
  if (activation != ClassActivation::softmax || scores.empty()) return out;
  const float most = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(double(score) - most);
  for (float& score : out) score = float(std::exp(double(score) - most) / sum);
  return out;
}

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  int(bytes.size()));
  return out;
}

std::string embeddings_answer(const std::string& model, const std::vector<Vector>& embeddings, bool as_base64,
                              int64_t prompt_tokens) {
  std::string data;
  for (size_t i = 0; i < embeddings.size(); ++i) {
    const Vector& one = embeddings[i];
    const std::string_view bytes(reinterpret_cast<const char*>(one.data()), one.size() * sizeof(float));
    data += str(i == 0 ? "" : ",", R"({"object":"embedding","index":)", i, R"(,"embedding":)",
                as_base64 ? "\"" + base64(bytes) + "\"" : float_list(one), "}");
  }
  return str(R"({"object":"list","data":[)", data, R"(],"model":)", json_text(model), ",", encoder_usage(prompt_tokens),
             "}");
}

std::string rerank_answer(const CompletionHead& head, std::vector<RankedDocument> documents, int64_t top_n,
                          bool with_text, int64_t prompt_tokens) {
  std::ranges::stable_sort(documents, std::greater(), &RankedDocument::score);
  std::string results;
  for (const RankedDocument& one : documents) {
    if (top_n-- <= 0) break;
    results +=
        str(results.empty() ? "" : ",", R"({"index":)", one.index, R"(,"relevance_score":)", number_text(one.score));
    if (with_text) results += R"(,"document":{"text":)" + json_text(one.text) + "}";
    results += "}";
  }
  return str(list_head(head), R"(,"results":[)", results, "],", encoder_usage(prompt_tokens),
             R"(,"meta":{"billed_units":{"search_units":1}}})");
}

std::string score_answer(const CompletionHead& head, const std::vector<double>& scores, int64_t prompt_tokens) {
  std::string data;
  for (size_t i = 0; i < scores.size(); ++i)
    data += str(i == 0 ? "" : ",", R"({"index":)", i, R"(,"object":"score","score":)", number_text(scores[i]), "}");
  return str(list_head(head), R"(,"data":[)", data, "],", encoder_usage(prompt_tokens), "}");
}

std::string classify_answer(const CompletionHead& head, const std::vector<Vector>& classes,
                            const std::vector<std::string>& labels, int64_t prompt_tokens) {
  std::string data;
  for (size_t i = 0; i < classes.size(); ++i) {
    const Vector& one = classes[i];
    const auto best = size_t(std::ranges::max_element(one) - one.begin());
    // One probability is that of the only label.
    const size_t label = one.size() == 1 ? 0 : best;
    data += str(i == 0 ? "" : ",", R"({"index":)", i, R"(,"label":)",
                json_text(label < labels.size() ? labels[label] : str("LABEL_", label)), R"(,"probs":)",
                float_list(one), R"(,"num_classes":)", one.size(), "}");
  }
  return str(list_head(head), R"(,"data":[)", data, "],", encoder_usage(prompt_tokens), "}");
}

}  // namespace easydel::server

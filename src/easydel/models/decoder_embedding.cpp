// The embedding of a decoder as its spec describes it.
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>

#include "easydel/models/decoder_parts.h"

namespace easydel::models {
namespace {

class TableEmbedding final : public DecoderEmbedding {
 public:
  TableEmbedding(const nn::Scope& base, const DecoderSpec& spec)
      : multiplier_(spec.embedding_multiplier),
        table_(base / spec.names.embedding, spec.vocabulary, spec.hidden, spec.deviation, nn::Split::vocabulary,
               spec.padding) {
    if (spec.learned_positions)
      positions_.emplace(base / "wpe", spec.max_positions, spec.hidden, spec.deviation, nn::Split::none);
    if (!spec.names.embedding_norm.empty())
      norm_.emplace(base / spec.names.embedding_norm, spec.hidden, spec.embedding_norm);
  }

  Tensor operator()(const Inputs& inputs, nn::Pass& pass) const override {
    Tensor x = table_(inputs.tokens, pass);
    if (multiplier_ != 1.0) x = x * multiplier_;
    if (positions_) x = x + (*positions_)(pass.stream().positions, pass);
    return norm_ ? (*norm_)(x) : x;
  }
  nn::Parameter table() const override { return table_.weight(); }

 private:
  double multiplier_;
  nn::Embedding table_;
  std::optional<nn::Embedding> positions_;
  std::optional<nn::Norm> norm_;
};

}  // namespace

std::unique_ptr<DecoderEmbedding> build_embedding(const nn::Scope& base, const DecoderSpec& spec) {
  return std::make_unique<TableEmbedding>(base, spec);
}

Tensor counted_positions(const Tensor& counts, const nn::Stream& stream) {
  const Tensor before = stream.positions.to(counts.device());
  std::vector<Tensor> parts;
  for (int64_t s = 0; s < stream.sequences(); ++s) {
    const int64_t begin = stream.cu_seqlens[size_t(s)], end = stream.cu_seqlens[size_t(s) + 1];
    const Tensor part = counts.slice(0, begin, end);
    parts.push_back((part.cumsum(0) + before.slice(0, begin, std::min(begin + 1, end))) * part - 1);
  }
  return at::cat(parts);
}

}  // namespace easydel::models

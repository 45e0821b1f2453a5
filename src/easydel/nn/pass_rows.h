// Attention whose keys are one row for each token, the same for all heads (nn/mla.h): the part of nn::Pass that writes
// these rows and reads them back. A row may hold more than the key, such as the key of an indexer.
#pragma once

#include <span>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/nn/pass.h"

namespace easydel::nn {

class KeyRows {
 public:
  // row [tokens, dim] of this pass's tokens, which is stored as head `head` of layer `layer` if there is a memory. The
  // pass must outlive this.
  KeyRows(Pass& pass, int64_t layer, int64_t head, Tensor row);

  // Whether the rows that are stored are rounded ones, which every token reads, so that it has the same bits however a
  // prompt is cut.
  bool rounded() const;
  // The rows of the sequences that the spans are of, from position 0 to each span's last token, one after the other, in
  // the dtype of the computation: [sum of keys(), dim].
  Tensor up_to(std::span<const TokenSpan> spans) const;
  // bool [keys()], the keys of a span that are masked; undefined: none.
  Tensor masked(const TokenSpan& span) const;

  // Attention of q, whose rows are the tokens of the spans (neighbours in the stream). Of a row the first `width`
  // elements are the key, the first v_dim the value. -> [tokens, heads, v_dim]
  Tensor attend(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q, int64_t width,
                int64_t v_dim) const;
  // The same where each token sees the keys of its choice alone; choices are those of all tokens of the stream.
  Tensor attend(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q, int64_t width,
                int64_t v_dim, const std::vector<KeyChoice>& choices) const;
  // The same over keys k and values v [sum of keys(), heads, ...], which the caller expanded from up_to(spans).
  Tensor attend_expanded(const ops::AttentionSpec& spec, std::span<const TokenSpan> spans, const Tensor& q,
                         const Tensor& k, const Tensor& v) const;

 private:
  Tensor run(const ops::AttentionSpec& spec, ops::AttentionCall& call, std::span<const TokenSpan> spans,
             const Tensor& q, const Tensor& k, const Tensor& v) const;

  Pass& pass_;
  const Stream& on_;
  Tensor row_;      // [tokens, 1, dim]
  KeyPages pages_;  // with a memory; keys [pages, 1, page_tokens, dim], their scales if they are codes
};

}  // namespace easydel::nn

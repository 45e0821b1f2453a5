#include "easydel/ops/key_pages.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/key_pages.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

// Rows that only have to be copied or made codes of: rotated already unless the kernel rotates them.
struct Rows {
  Tensor rows;
  Pages pages;
};

void write_by_kernel(const Rows* parts, size_t count, const RopeTable* rope, std::span<const PagePlace> places) {
  std::vector<int64_t> offsets;
  std::vector<kernels::PagedRows> all;
  for (size_t i = 0; i < count; ++i) {
    const auto& [pages, scales] = parts[i].pages;
    kernels::PagedRows& one = all.emplace_back();
    one.from = tensor::heads_of(parts[i].rows);
    one.heads = pages.size(1), one.dim = head_dim_of(pages);
    one.to = {pages.mutable_data_ptr(), tensor::page_dtype(pages.scalar_type()), pages.stride(2), pages.stride(1)};
    one.page_stride = pages.stride(0);
    if (scales.defined()) {
      one.scales = scales.mutable_data_ptr<float>();
      one.scale_page_stride = scales.stride(0), one.scale_head_stride = scales.stride(1);
      one.scale_token_stride = scales.stride(2), one.groups = scales.size(3);
    }
    if (i > 0 || !rope) continue;
    one.pairs = rope->cos.size(-1), one.interleaved = rope->interleaved;
    one.cos = rope->cos.const_data_ptr<float>(), one.sin = rope->sin.const_data_ptr<float>();
  }
  static_assert(sizeof(PagePlace) == sizeof(kernels::PagePlace));
  kernels::write_pages(tensor::executor(), all,
                       {reinterpret_cast<const kernels::PagePlace*>(places.data()), places.size()});
}

void write_by_torch(const Rows& part, std::span<const PagePlace> places) {
  std::vector<int64_t> pages, tokens;
  for (const PagePlace& place : places) pages.push_back(place.page), tokens.push_back(place.token);
  const Tensor& to = part.pages.rows;
  const auto index = [&](const std::vector<int64_t>& of) { return at::tensor(of, at::kLong).to(to.device()); };
  const c10::List<std::optional<Tensor>> indices({index(pages), index(tokens)});
  to.transpose(1, 2).index_put_(indices, part.rows);
}

// Codes of kByte [..., dim / 2] as whole numbers [..., dim].
Tensor spread(const Tensor& pairs) {
  const int64_t bytes = pairs.size(-1), block = kernels::i4_block / 2;
  std::vector<Tensor> parts;  // of up to 32 codes: the low halves of their bytes, then the high ones
  for (int64_t first = 0; first < bytes; first += block) {
    const Tensor some = pairs.narrow(-1, first, std::min(block, bytes - first));
    parts.push_back(some.bitwise_and(15)), parts.push_back(some.bitwise_right_shift(4));
  }
  return at::cat(parts, -1).to(at::kFloat).sub_(8);
}

}  // namespace

void write_pages(const Pages& key_pages, const Tensor& keys, const RopeTable* rope, const Pages& value_pages,
                 const Tensor& values, std::span<const PagePlace> places) {
  const at::NoGradGuard no_gradient;
  check(keys.size(0) == int64_t(places.size()), "pages: ", keys.size(0), " rows for ", places.size(), " places");
  const bool coded = key_pages.scales.defined();
  check(!coded || (key_pages.rows.is_cpu() && tensor::kernels_serve(keys, values)), "pages: codes need a CPU");
  // The kernel can rotate if the dtype is that of the pages, or codes are made of it, and there are as many sines as
  // cosines.
  const bool rotates = rope && (coded || keys.scalar_type() == key_pages.rows.scalar_type()) &&
                       tensor::kernels_serve(keys, rope->cos) && rope->cos.is_contiguous() &&
                       rope->sin.is_contiguous() && rope->sin.sizes() == rope->cos.sizes();
  const auto rows = [&](const Tensor& from, const Pages& pages) {
    const Tensor same = coded ? from.detach() : from.detach().to(pages.rows.scalar_type());
    return Rows{same.numel() == 0 || same.stride(-1) == 1 ? same : same.contiguous(), pages};
  };
  const Rows parts[] = {rows(rope && !rotates ? ops::rope(keys, *rope) : keys, key_pages),
                        values.defined() ? rows(values, value_pages) : Rows{}};
  const size_t count = values.defined() ? 2 : 1;
  if (coded || tensor::kernels_serve(key_pages.rows))
    return write_by_kernel(parts, count, rotates ? rope : nullptr, places);
  for (size_t i = 0; i < count; ++i) write_by_torch(parts[i], places);
}

Tensor gather_pages(const Pages& all, std::span<const int32_t> table, int64_t count) {
  const auto& [pages, scales] = all;
  const int64_t page_tokens = pages.size(2), needed = (count + page_tokens - 1) / page_tokens;
  check(needed <= int64_t(table.size()), "pages: ", count, " tokens in ", table.size(), " pages");
  const at::ScalarType type = scales.defined() ? at::kFloat : pages.scalar_type();
  const Tensor out = at::empty({pages.size(1), needed * page_tokens, head_dim_of(pages)}, pages.options().dtype(type));
  for (int64_t i = 0; i < needed; ++i) {
    const int64_t tokens = std::min(page_tokens, count - i * page_tokens);
    const Tensor to = out.narrow(1, i * page_tokens, tokens);
    const Tensor from = pages[table[size_t(i)]].narrow(1, 0, tokens);
    to.copy_(pages.scalar_type() == at::kByte ? spread(from) : from);
    if (!scales.defined()) continue;
    const int64_t groups = scales.size(3);
    to.unflatten(2, {groups, to.size(2) / groups}).mul_(scales[table[size_t(i)]].narrow(1, 0, tokens).unsqueeze(3));
  }
  return out.narrow(1, 0, count).transpose(0, 1);
}

}  // namespace easydel::ops

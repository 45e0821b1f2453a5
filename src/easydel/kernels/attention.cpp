// Cuts the forward of attention into tasks of rows and chunks of keys; attention_loops.h carries them out.
#include "easydel/kernels/attention.h"

#include <algorithm>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

namespace easydel::kernels {

namespace {

bool all_bf16(DType q, DType k, DType v) {
  return q == DType::bf16 && (k == DType::bf16 || is_coded(k)) && (v == DType::bf16 || is_coded(v));
}

int64_t last_key(const AttentionStep& step, const AttentionRows& rows) {
  return visible(step.spec, *rows.sequence, (rows.first + rows.count - 1) / step.group()).end;
}
int64_t chunks_of(const AttentionStep& step, const AttentionRows& rows) {
  return std::max<int64_t>(1, divide_up(last_key(step, rows), chunk_keys));
}
// The first chunk with a key that the rows see; earlier ones are skipped.
int64_t first_chunk(const AttentionStep& step, const AttentionRows& rows) {
  const Range first = visible(step.spec, *rows.sequence, rows.first / step.group());
  return std::min(first.begin / chunk_keys, chunks_of(step, rows) - 1);
}

// Tasks of up to 192 rows, fewer if threads would be idle; those with the most keys first.
std::vector<AttentionRows> cut_rows(const AttentionStep& step, std::span<const AttentionSequence> sequences,
                                    int threads) {
  int64_t rows = 0;
  for (const AttentionSequence& s : sequences) rows += s.queries * step.spec.heads;
  int64_t max_rows = max_attention_rows;
  while (max_rows > block_rows && rows / max_rows < 4 * threads) max_rows /= 2;
  std::vector<AttentionRows> pieces;
  for (const AttentionSequence& s : sequences)
    for (int64_t head = 0; head < step.spec.kv_heads; ++head)
      for (int64_t end = s.queries * step.group(); end > 0;) {
        const int64_t first = (end - 1) / max_rows * max_rows;
        pieces.push_back({&s, head, first, end - first});
        end = first;
      }
  std::stable_sort(pieces.begin(), pieces.end(), [&](const AttentionRows& a, const AttentionRows& b) {
    return last_key(step, a) > last_key(step, b);
  });
  return pieces;
}

template <class Offset>
std::vector<AttentionSequence> by_offsets(const Offset* offsets, int64_t count) {
  std::vector<AttentionSequence> sequences;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = offsets[i], length = offsets[i + 1] - begin;
    check(length >= 0, "attention: sequence ", i, " begins at ", begin, " and ends at ", int64_t(offsets[i + 1]));
    sequences.push_back({.first_query = begin, .queries = length, .keys = length, .first_key = begin});
  }
  return sequences;
}

}  // namespace

std::vector<AttentionSequence> sequences_of(const int32_t* offsets, int64_t count) {
  return by_offsets(offsets, count);
}
std::vector<AttentionSequence> sequences_of(const int64_t* offsets, int64_t count) {
  return by_offsets(offsets, count);
}

AccumulationOrder attention_order(DType q, DType k, DType v) {
  return all_bf16(q, k, v) ? bf16_order() : AccumulationOrder::fp32_chain;
}

void attend(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences, Heads q,
            Heads k, Heads v, MutableHeads out, float* lse, AccumulationOrder order) {
  check(order == AccumulationOrder::fp32_chain || all_bf16(q.dtype, k.dtype, v.dtype), "attention: the order ",
        name(order), " is not for these numbers");
  check(!spec.rounded_slopes || spec.softcap == 0, "attention: rounded slopes have no softcap");
  check(spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0, "attention: ", spec.heads, " heads over ", spec.kv_heads,
        " kv heads");
  const bool coded = is_coded(k.dtype) || is_coded(v.dtype);
  check(!coded || (k.scales.data && v.scales.data), "attention: codes without their scales");
  check(!coded || (k.dtype == v.dtype && k.dtype != DType::i4) || (k.dtype == DType::i8 && v.dtype == DType::i4),
        "attention: keys and values of different codes");
  const int64_t key_groups = k.scales.groups, value_groups = v.scales.groups;
  check(!coded ||
            (key_groups > 0 && spec.head_dim % key_groups == 0 && value_groups > 0 && spec.v_dim % value_groups == 0),
        "attention: groups that differ in size");
  const bool grouped = coded && (key_groups > 1 || value_groups > 1);
  check(k.dtype != DType::i8 || grouped || spec.head_dim <= max_int8_dim, "attention: int8 keys of ", spec.head_dim,
        " dimensions");
  const AttentionStep step{spec, q, k, v, out, lse, order};
  const Loops& isa = loops();
  const Loops::Attention::Chunks& chunk_loops = grouped ? isa.attention.grouped
                                                : coded ? isa.attention.coded
                                                        : isa.attention.plain;
  const auto attend_chunk = order == AccumulationOrder::bf16_tile    ? chunk_loops.tiles
                            : order == AccumulationOrder::bf16_pairs ? chunk_loops.pairs
                                                                     : chunk_loops.fp32;
  const std::vector<AttentionRows> pieces = cut_rows(step, sequences, executor.size());
  const int64_t floats = partial_floats(step);
  int64_t parts = 0, longest = 0;
  for (const AttentionRows& rows : pieces) {
    const int64_t chunks = chunks_of(step, rows) - first_chunk(step, rows);
    parts += chunks, longest = std::max(longest, chunks);
  }
  if (longest <= 1 || int64_t(pieces.size()) >= 4 * executor.size() || executor.size() == 1) {
    executor.run(int64_t(pieces.size()), [&](int64_t i) {
      thread_local Scratch<float> of_thread;
      const AttentionRows& rows = pieces[size_t(i)];
      float* const data = of_thread.at_least(2 * floats);
      const AttentionPartial all = partial_at(data), part = partial_at(data + floats);
      const int64_t begin = first_chunk(step, rows), end = chunks_of(step, rows);
      attend_chunk(step, rows, begin, all);
      for (int64_t chunk = begin + 1; chunk < end; ++chunk) {
        attend_chunk(step, rows, chunk, part);
        isa.attention.merge(step, rows.count, all, part);
      }
      isa.attention.finish(step, rows, all);
    });
    return;
  }
  // Few rows over many keys: the chunks run on all threads, and are then merged in the same order. Consecutive chunks
  // form one task, because each prefetches the keys and values after its own, and the first of a task waits for them.
  struct Piece {
    const AttentionRows* rows;
    int64_t chunk, of_rows;
  };
  std::vector<Piece> chunks;
  for (const AttentionRows& rows : pieces) {
    const int64_t begin = first_chunk(step, rows), end = chunks_of(step, rows);
    for (int64_t chunk = begin; chunk < end; ++chunk) chunks.push_back({&rows, chunk, end - begin});
  }
  thread_local Scratch<float> of_caller;
  float* const data = of_caller.at_least(parts * floats);
  const int64_t runs = std::min<int64_t>(parts, 2 * executor.size());
  executor.run(runs, [&](int64_t run) {
    for (int64_t i = parts * run / runs; i < parts * (run + 1) / runs; ++i)
      attend_chunk(step, *chunks[size_t(i)].rows, chunks[size_t(i)].chunk, partial_at(data + i * floats));
  });
  for (int64_t i = 0; i < parts; i += chunks[size_t(i)].of_rows) {
    const Piece& piece = chunks[size_t(i)];
    for (int64_t c = 1; c < piece.of_rows; ++c)
      isa.attention.merge(step, piece.rows->count, partial_at(data + i * floats), partial_at(data + (i + c) * floats));
    isa.attention.finish(step, *piece.rows, partial_at(data + i * floats));
  }
}

}  // namespace easydel::kernels

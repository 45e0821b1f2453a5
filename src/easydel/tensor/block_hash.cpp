#include "easydel/tensor/block_hash.h"

#include <algorithm>
#include <cstring>

#include "easydel/tensor/executor.h"

namespace easydel::tensor {
namespace {

constexpr size_t block_bytes = size_t(4) << 20;

// Four chains of multiplications, so that a block is hashed about as fast as it is read.
uint64_t hash_of_block(const unsigned char* bytes, size_t count) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15, other_odd = 0xc2b2ae3d27d4eb4f;
  uint64_t chains[4] = {odd, other_odd, count, 1};
  const auto mix = [](uint64_t chain, uint64_t word) {
    const uint64_t sum = chain + word * other_odd;
    return (sum << 31 | sum >> 33) * odd;
  };
  size_t at = 0;
  for (; at + sizeof chains <= count; at += sizeof chains) {
    uint64_t words[4];
    std::memcpy(words, bytes + at, sizeof words);
    for (int i = 0; i < 4; ++i) chains[i] = mix(chains[i], words[i]);
  }
  for (; at < count; ++at) chains[at % 4] = mix(chains[at % 4], bytes[at]);
  uint64_t out = 0;
  for (const uint64_t chain : chains) out = mix(out ^ chain >> 29, chain);
  return out ^ out >> 32;
}

}  // namespace

std::vector<uint64_t> hashes_of_blocks(const void* data, size_t bytes) {
  const auto* const begin = static_cast<const unsigned char*>(data);
  std::vector<uint64_t> blocks((bytes + block_bytes - 1) / block_bytes);
  executor().run(int64_t(blocks.size()), [&](int64_t block) {
    const size_t at = size_t(block) * block_bytes;
    blocks[size_t(block)] = hash_of_block(begin + at, std::min(block_bytes, bytes - at));
  });
  return blocks;
}

}  // namespace easydel::tensor

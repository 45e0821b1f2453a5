#include "easydel/elarge/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/sha256.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/tensor/executor.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
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

class Digest {
 public:
  void add(const std::string& text) {
    const uint64_t size = text.size();
    all_.add(&size, sizeof size);
    all_.add(text.data(), text.size());
  }
  void add(const void* data, size_t bytes) {
    const auto* const begin = static_cast<const unsigned char*>(data);
    std::vector<uint64_t> blocks((bytes + block_bytes - 1) / block_bytes);
    tensor::executor().run(int64_t(blocks.size()), [&](int64_t block) {
      const size_t at = size_t(block) * block_bytes;
      blocks[size_t(block)] = hash_of_block(begin + at, std::min(block_bytes, bytes - at));
    });
    all_.add(blocks.data(), blocks.size() * sizeof(uint64_t));
  }
  std::string name() { return "fp_" + all_.hex().substr(0, 16); }

 private:
  files::Sha256 all_;
};

// Codes are what their files hold, or are made of it.
void add_files(const std::filesystem::path& folder, Digest& digest) {
  if (folder.empty() || !weights::Folder::has_weights(folder)) return;
  const weights::Folder files = weights::Folder::open(folder);
  for (const std::string& name : files.names()) {
    const weights::TensorView view = files.at(name);
    digest.add(name);
    digest.add(view.bytes.data(), view.bytes.size());
  }
}

}  // namespace

std::string fingerprint(const models::Model& model, const std::string& formats) {
  Digest digest;
  digest.add(to_json(model.config()));
  digest.add(formats);
  bool has_codes = false;
  for (const nn::Entry& entry : model.parameters().entries()) {
    digest.add(str(entry.path, " ", int(entry.compute)));
    if (!entry.shard.defined()) {
      has_codes = true;
      continue;
    }
    const Tensor values = entry.shard.detach().to(at::kCPU).contiguous();
    std::string form = std::to_string(int(values.scalar_type()));
    for (const int64_t size : values.sizes()) form += " " + std::to_string(size);
    digest.add(form);
    digest.add(values.data_ptr(), values.nbytes());
  }
  for (const auto& adapter : model.adapters()) digest.add(to_json(config::write(adapter->options().config)));
  if (has_codes) add_files(model.folder(), digest);
  digest.add(str(int(model.compute_type()), " ", int(model.attention()), " ", model.team().size(), " ",
                 model.compute_type() == at::kBFloat16 ? int(kernels::bf16_order()) : 0));
  return digest.name();
}

}  // namespace easydel::elarge

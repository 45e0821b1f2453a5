#include "easydel/elarge/fingerprint.h"

#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/sha256.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/tensor/block_hash.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
namespace {

class Digest {
 public:
  void add(const std::string& text) {
    const uint64_t size = text.size();
    all_.add(&size, sizeof size);
    all_.add(text.data(), text.size());
  }
  void add(const void* data, size_t bytes) {
    const std::vector<uint64_t> blocks = tensor::hashes_of_blocks(data, bytes);
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

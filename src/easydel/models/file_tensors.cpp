#include "easydel/models/file_tensors.h"

#include <map>

#include "easydel/base/error.h"

namespace easydel::models {

bool FileTensor::is_parameter() const {
  const nn::TensorSource& source = parts.front().entry->source;
  return parts.size() == 1 && source.viewed.empty() && !source.transposed && source.end == 0;
}

std::vector<FileTensor> file_tensors(const nn::ParameterTable& table) {
  std::vector<FileTensor> out;
  std::map<std::string, size_t> known;
  for (const nn::Entry& entry : table.entries()) {
    if (entry.adapter) continue;  // not part of the model's files
    const nn::TensorSource& source = entry.source;
    check(source.packing == nn::Packing::none, entry.path, ": packed tensors are read only");
    for (size_t i = 0; i < source.tensors.size(); ++i) {
      const auto [at, fresh] = known.emplace(source.tensors[i], out.size());
      if (fresh)
        out.push_back({source.tensors[i],
                       source.found.empty() ? source.tensors[i] : source.found[i],
                       source.file_shape(entry.shape),
                       source.found_type,
                       {}});
      out[at->second].parts.push_back({&entry, source.stacked ? int64_t(i) : -1});
    }
  }
  return out;
}

}  // namespace easydel::models

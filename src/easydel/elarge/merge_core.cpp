#include <cmath>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/session_core.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"

namespace easydel::elarge {

void merge_core(const MergeRequest& request) {
  models::LoadOptions load;
  // As the file holds them: mapped, and never computed with.
  load.device = models::DeviceSetting::cpu;
  load.keep_file_types = true;
  load.quantization = quantization_of(request.quantization);
  std::set<std::string> names;
  for (const MergeRequest::Part& part : request.adapters) {
    models::AdapterOptions adapter = models::adapter_in(part.folder);
    adapter.weight = part.weight;
    adapter.name = "default";
    for (int next = 2; !names.insert(adapter.name).second; ++next) adapter.name = str("adapter", next);
    const std::string where = part.folder.string();
    if (!std::isfinite(part.weight))
      refuse("--adapter", str(part.weight, " is not a weight (", where, ")"), "give a number");
    if (part.weight != 1 && (adapter.config.use_dora || !adapter.config.modules_to_save.empty()))
      refuse("--adapter",
             str("a part of ", where, " cannot be added: it is not only a sum (",
                 adapter.config.use_dora ? "use_dora" : "modules_to_save", ")"),
             "leave its weight out");
    load.adapters.push_back(std::move(adapter));
  }
  const auto model = models::load_model(request.model, load);
  const models::MergeOptions merge = models::merge_options(*model, load,
                                                           {.base = request.base,
                                                            .to_codes = request.to_codes,
                                                            .base_key = "--merge-base",
                                                            .codes_key = "--merge-to-codes"});
  try {
    models::save_model(*model, request.output, request.dtype, models::default_shard_bytes, merge);
  } catch (...) {
    files::remove_all(request.output);
    throw;
  }
}

}  // namespace easydel::elarge

#include "easydel/esurge/model_cache.h"

#include "easydel/base/error.h"
#include "easydel/nn/cache.h"

namespace easydel::esurge {

ModelCache model_cache(const models::Model& model, int64_t page_size) {
  ModelCache out;
  out.shape = model.make_cache(1, 1)->shape();
  out.groups = nn::groups_of(out.shape);
  out.layout.page_size = page_size;
  out.layout.check_valid();
  for (const nn::PageGroup& group : out.groups) {
    const nn::CacheLayer& layer = out.shape.layers[size_t(group.layers.front())];
    CacheGroup& own = out.layout.groups.emplace_back();
    own.page_bytes = nn::bytes_of(out.shape, group, page_size);
    if (group.states)
      own.kind = CacheGroup::Kind::state;
    else if (layer.window > 0)
      own.kind = CacheGroup::Kind::window, own.span = layer.window;
    else if (layer.chunk > 0)
      own.kind = CacheGroup::Kind::chunk, own.span = layer.chunk;
  }
  // With one set of frequencies for a whole sequence roles do not matter: it is computed again when they change.
  out.layout.roles_matter = model.turning_length() > 0 && model.restart_length() == 0;
  for (const nn::CacheLayer& layer : out.shape.layers) out.layout.roles_matter |= layer.by_role;
  return out;
}

std::unique_ptr<nn::PageStorage> make_storage(const ModelCache& cache, const CacheBudget& budget) {
  std::vector<int64_t> ids;
  for (const CacheGroup& group : cache.layout.groups) ids.push_back(budget.bytes / group.page_bytes);
  return std::make_unique<nn::PageStorage>(cache.shape, cache.layout.page_size, cache.groups, std::move(ids));
}

void apply(nn::PageStorage& storage, std::span<const PageOp> ops) {
  for (const PageOp& op : ops) switch (op.kind) {
      case PageOp::Kind::copy:
        storage.copy(op.group, op.from, op.to, op.rows);
        break;
      case PageOp::Kind::clear:
        storage.clear(op.group, op.to);
        break;
      case PageOp::Kind::release:
        storage.release(op.group, op.to);
        break;
    }
}

}  // namespace easydel::esurge

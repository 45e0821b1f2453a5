// What the layers of a model keep of a sequence, for the scheduler and as storage.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "easydel/esurge/page_pools.h"
#include "easydel/models/model.h"
#include "easydel/nn/page_storage.h"

namespace easydel::esurge {

struct ModelCache {
  nn::CacheShape shape;
  std::vector<nn::PageGroup> groups;
  CacheLayout layout;  // its groups are the same ones in the same order
};

// UserError: a page size that is out of range, or a model that sees both sides.
ModelCache model_cache(const models::Model& model, int64_t page_size);

// Storage for as many ids of each group as the budget allows.
std::unique_ptr<nn::PageStorage> make_storage(const ModelCache& cache, const CacheBudget& budget);

// Does to storage what a plan says, in the order of the list.
void apply(nn::PageStorage& storage, std::span<const PageOp> ops);

}  // namespace easydel::esurge

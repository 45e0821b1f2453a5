// Decides which part of a parameter this rank holds: partition rules first, else the layout that its role asks for.
#pragma once

#include <memory>

#include "easydel/collective/team.h"
#include "easydel/mesh/rules.h"
#include "easydel/nn/parameter.h"

namespace easydel::nn {

// The default layout of EasyDeL for a parameter, unresolved, in our storage order: weights and embeddings are cut by
// fsdp (with sp) in one dimension and by tp in the other; norms, biases and learned positions stay whole.
mesh::PartitionSpec default_layout(const Entry& entry);

// Sets team, layout and slice of `entry`. `dropped` is raised by one for each dimension that its axes do not divide.
void place(Entry& entry, std::shared_ptr<const collective::Team> team, const mesh::PartitionRules& rules,
           int64_t& dropped);

}  // namespace easydel::nn

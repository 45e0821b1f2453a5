#include "easydel/nn/placement.h"

namespace easydel::nn {

mesh::PartitionSpec default_layout(const Entry& entry) {
  size_t rank = entry.shape.size();
  switch (entry.role) {
    case Role::weight:
      switch (entry.split) {
        case Split::output:
        case Split::vocabulary:
          return mesh::storage_order(rank == 3 ? mesh::expert_column_wise() : mesh::column_wise(), rank);
        case Split::input:
          return mesh::storage_order(rank == 3 ? mesh::expert_row_wise() : mesh::row_wise(), rank);
        case Split::none:
          return {};
      }
      return {};
    case Role::embedding:
      return entry.split == Split::vocabulary ? mesh::vocabulary_wise() : mesh::PartitionSpec{};
    case Role::norm:
    case Role::bias:
    case Role::other:
      return {};
  }
  return {};
}

void place(Entry& entry, std::shared_ptr<const collective::Team> team, const mesh::PartitionRules& rules,
           int64_t& dropped) {
  mesh::PartitionSpec requested = default_layout(entry);
  if (const auto rule = rules.find(entry.easydel_path, entry.shape.size())) {
    // Rules name the dimensions of kernels as [in, out]; embeddings have the same order everywhere.
    requested = entry.role == Role::weight ? mesh::storage_order(*rule, entry.shape.size()) : *rule;
  }
  entry.team = std::move(team);
  entry.layout = mesh::resolve(requested, entry.shape, entry.team->mesh(), &dropped);
  entry.slice = mesh::slice_of(entry.layout, entry.shape, entry.team->mesh(), entry.team->rank());
}

}  // namespace easydel::nn

#include "easydel/nn/parameter.h"

#include "easydel/base/error.h"
#include "easydel/nn/gather.h"
#include "easydel/nn/weight.h"

namespace easydel::nn {

int64_t Entry::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

bool is_linear(const Entry& entry) {
  return entry.role == Role::weight && entry.shape.size() == 2 && !entry.router && !entry.adapter;
}

std::string layer_name(const Entry& entry) {
  constexpr std::string_view leaf = ".weight";
  return entry.path.ends_with(leaf) ? entry.path.substr(0, entry.path.size() - leaf.size()) : entry.path;
}

Tensor Parameter::value() const {
  if (!entry_->shard.defined() && entry_->weight) return entry_->weight->values();
  if (!entry_->shard.defined() && entry_->stack) return entry_->stack->values();
  return entry_->team->size() == 1 ? entry_->shard : gathered(*entry_);
}

Entry& ParameterTable::add(Entry entry) {
  check(!by_path_.contains(entry.path), "two parameters are named ", entry.path);
  Entry& added = entries_.emplace_back(std::move(entry));
  by_path_[added.path] = &added;
  return added;
}

Entry* ParameterTable::find(std::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

}  // namespace easydel::nn

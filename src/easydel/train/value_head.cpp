#include "easydel/train/value_head.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mv.h>

#include "easydel/base/error.h"
#include "easydel/models/embedding.h"
#include "easydel/tensor/random.h"

namespace easydel::train {
namespace {

constexpr const char* path = "value_head.weight";
constexpr double deviation = 0.02;  // as transformers' heads start

}  // namespace

ValueHead::ValueHead(models::Model& model, uint64_t seed) {
  check(!model.parameters().find(path), "a model with two value heads");
  nn::Entry entry;
  entry.path = path;
  entry.easydel_path = "value_head/kernel";
  entry.shape = {1, models::hidden_size(model)};
  entry.head = true;
  entry.adapter = true;  // not part of the model's files
  entry.layout.resize(2);
  entry.slice = {{0, 0}, entry.shape};
  for (const nn::Entry& other : model.parameters().entries()) entry.team = other.team;
  entry.shard = at::empty(entry.shape, at::kFloat);
  tensor::fill_normal(entry.shard, tensor::key_of(seed, std::string("initial/") + path), deviation, entry.shape,
                      {0, 0});
  entry.shard = entry.shard.to(model.device()).requires_grad_(true);
  entry_ = &model.parameters().add(std::move(entry));
}

Tensor ValueHead::values(const Tensor& hidden) const {
  return at::mv(hidden.to(at::kFloat), nn::Parameter(entry_).value().select(0, 0).to(at::kFloat));
}

void ValueHead::add_state(MethodState& state) const { state.tensors.push_back({"value_head", entry_->shard, entry_}); }

void ValueHead::restore(const SavedState& saved) const {
  const c10::AutoGradMode no_grad(false);
  saved.copy_into(entry_->shard, "value_head", entry_);
  entry_->written();
}

}  // namespace easydel::train

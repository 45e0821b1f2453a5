// What a weight policy costs on SmolLM2-135M's shape: adapter_bench [--dtype bf16] [--rank 2] [--rounds 5]
// [--length 512] [--context 128] [--new 16]. A policy that leaves every weight as it is (the cost of asking), and one
// that adds an adapter of zeros to every linear layer, the head and the embedding (tests/models/zero_adapters.h), each
// against the model without a policy: a forward and backward over `length` tokens, in which everything learns, and
// decode steps, in turns in one process. Ratios of CPU time, pair by pair. No adapter can cost less than its share of
// the multiplications, which is printed.
#include <ATen/ops/arange.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "easydel/models/model.h"
#include "easydel/tensor/memory.h"
#include "measure.h"
#include "models/zero_adapters.h"

namespace easydel::bench {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

struct Shape {
  int64_t length, context, fresh;
};

Tensor tokens_of(int64_t count) { return at::arange(count, at::kLong) * 31 % 509; }

void train(models::Model& model, const Shape& shape) {
  const Tensor tokens = tokens_of(shape.length);
  nn::Pass pass = nn::Pass::over({0, shape.length});
  const Tensor hidden = model.forward({tokens}, pass).hidden;
  model.head().score(hidden, tokens, pass, {.chunk = 256}).logps.mean().backward();
  for (nn::Entry& entry : model.parameters().entries()) entry.shard.mutable_grad() = Tensor();
}

// Reads a prompt and returns the CPU time of the decode steps after it.
double decode(models::Model& model, const Shape& shape) {
  const at::NoGradGuard no_gradient;
  const auto cache = model.make_cache(1, shape.context + shape.fresh);
  double begin = 0;
  for (int64_t step = 0; step <= shape.fresh; ++step) {
    if (step == 1) begin = cpu_seconds();
    const int64_t count = step == 0 ? shape.context : 1;
    const auto memory = cache->next({0}, {count});
    nn::Pass pass = nn::Pass::next(*memory, {shape.context});
    pass.stream().requested = {1};
    model.head().logits(model.forward({tokens_of(count)}, pass).hidden, pass);
  }
  return cpu_seconds() - begin;
}

// Multiplications of the adapters' products over those of the weights that they adapt.
double share_of_products(models::Model& model) {
  double added = 0, own = 0;
  for (const nn::Entry& a : model.parameters().entries()) {
    constexpr std::string_view ending = "lora_A.weight";
    if (!a.adapter || !a.path.ends_with(ending)) continue;
    const std::string layer = a.path.substr(0, a.path.size() - ending.size());
    const nn::Entry& b = *model.parameters().find(layer + "lora_B.weight");
    added += double(a.elements() + b.elements());
    own += double(a.shape.back()) * double(b.shape.front());
  }
  return added / own;
}

int main_of(int count, char** values) {
  const auto integer = [&](const char* name, const char* otherwise) {
    return int64_t(std::stoll(argument(count, values, name, otherwise)));
  };
  tensor::use_kept_memory();  // as in the program, before the first tensor
  const std::string dtype = argument(count, values, "dtype", "bf16");
  const int64_t rounds = integer("rounds", "5"), rank = integer("rank", "2");
  const Shape shape{integer("length", "512"), integer("context", "128"), integer("new", "16")};
  Scratch scratch;
  const auto folder = smol_shape(scratch / "smol135m");
  const char* const names[] = {"a policy that changes nothing", "zero adapters"};
  for (const bool training : {true, false}) {
    const auto loaded = [&](std::shared_ptr<nn::WeightPolicy> policy) {
      models::LoadOptions options;
      options.dtype = models::dtype_setting(dtype, "--dtype");
      options.training = training;
      options.weight_policy = std::move(policy);
      return load_model(folder, options);
    };
    const auto zero = std::make_shared<models::ZeroAdapters>(rank);  // its weights count in it
    const std::shared_ptr<models::Model> compared[] = {loaded(nullptr), loaded(std::make_shared<nn::WeightPolicy>()),
                                                       loaded(zero)};
    std::vector<double> ratios[2], plain;
    for (int64_t round = -1; round < rounds; ++round) {  // the first packs weights and takes memory
      double seconds[3] = {};
      for (size_t i = 0; i < 3; ++i) {
        models::Model& model = *compared[(i + size_t(round + 1)) % 3];
        double& taken = seconds[(i + size_t(round + 1)) % 3];
        const double begin = cpu_seconds();
        if (training) train(model, shape);
        taken = training ? cpu_seconds() - begin : decode(model, shape);
      }
      if (round < 0) continue;
      plain.push_back(1e3 * seconds[0] / double(training ? 1 : shape.fresh));
      for (size_t i = 0; i < 2; ++i) ratios[i].push_back(seconds[i + 1] / seconds[0]);
    }
    std::printf("%s, %s: %s ms of CPU time without a policy (least / median / most of %lld rounds)\n",
                training ? "forward and backward" : "decode step", dtype.c_str(), text(spread(plain), 2).c_str(),
                static_cast<long long>(rounds));
    for (size_t i = 0; i < 2; ++i) std::printf("  %s: %s of that\n", names[i], text(spread(ratios[i]), 3).c_str());
    std::printf("  of rank %lld: multiplications of the adapters over those of the weights %.4f\n",
                static_cast<long long>(rank), share_of_products(*compared[2]));
  }
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) { return easydel::bench::main_of(count, values); }

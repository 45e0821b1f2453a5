// A token mixer over whole texts against the same texts that arrive in pieces, for the tests of each mixer.
#pragma once

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <vector>

#include "easydel/nn/cache.h"
#include "easydel/nn/layer.h"
#include "nn/built.h"

namespace easydel::nn {

// Runs `mixer`, of layer 0, over two texts at once, each alone, and through a cache in pieces; all agree within
// `tolerance`. Returns its output for the two texts, of 9 and 5 tokens.
inline Tensor expect_same_in_pieces(const Layer& mixer, int64_t width, double tolerance = 1e-5) {
  const at::NoGradGuard no_gradient;
  const Tensor x = random_values({14, width}, "x");
  Pass both = Pass::over({0, 9, 14});
  const Tensor out = mixer.forward(x, both).x;
  Pass first = Pass::over({0, 9}), second = Pass::over({0, 5});
  EXPECT_TRUE(mixer.forward(x.slice(0, 0, 9), first).x.allclose(out.slice(0, 0, 9), tolerance, tolerance));
  EXPECT_TRUE(mixer.forward(x.slice(0, 9), second).x.allclose(out.slice(0, 9), tolerance, tolerance));

  CacheShape shape;
  shape.layers = {mixer.cache()};
  Cache cache(shape, 2, 9, 4);
  std::vector<Tensor> found[2];
  int64_t begin[2] = {0, 0};
  for (const auto& [of_first, of_second] : {std::pair{4, 2}, {1, 1}, {3, 0}, {1, 2}}) {
    const auto memory = cache.next({0, 1}, {of_first, of_second});
    Pass pass = Pass::next(*memory, {9, 5});
    const Tensor rows = at::cat({x.narrow(0, begin[0], of_first), x.narrow(0, 9 + begin[1], of_second)});
    const Tensor y = mixer.forward(rows, pass).x;
    pass.finish();
    found[0].push_back(y.slice(0, 0, of_first)), found[1].push_back(y.slice(0, of_first));
    begin[0] += of_first, begin[1] += of_second;
  }
  EXPECT_TRUE(at::cat(found[0]).allclose(out.slice(0, 0, 9), tolerance, tolerance));
  EXPECT_TRUE(at::cat(found[1]).allclose(out.slice(0, 9), tolerance, tolerance));
  return out;
}

}  // namespace easydel::nn

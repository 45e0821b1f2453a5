#include "easydel/media/image_shape.h"

#include <gtest/gtest.h>

namespace easydel::media {
namespace {

// One channel says all: the others are equal.
Image grey(int64_t width, int64_t height, const std::vector<int>& values) {
  Image out{width, height, {}};
  for (const int value : values) out.pixels.insert(out.pixels.end(), 3, uint8_t(value));
  return out;
}
std::vector<int> values(const Image& image) {
  std::vector<int> out;
  for (size_t i = 0; i < image.pixels.size(); i += 3) out.push_back(image.pixels[i]);
  return out;
}

// 1 2 3
// 4 5 6
TEST(ImageShape, IsTurnedByEachOrientation) {
  const auto turned = [](int orientation) { return values(upright(grey(3, 2, {1, 2, 3, 4, 5, 6}), orientation)); };
  using List = std::vector<int>;
  EXPECT_EQ(turned(1), (List{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(turned(2), (List{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(turned(3), (List{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(turned(4), (List{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(turned(5), (List{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(turned(6), (List{4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(turned(7), (List{6, 3, 5, 2, 4, 1}));
  EXPECT_EQ(turned(8), (List{3, 6, 2, 5, 1, 4}));
}

TEST(ImageShape, KeepsAnEvenImageEven) {
  const Image even = grey(4, 3, std::vector<int>(12, 77));
  for (const auto& [width, height] : {std::pair{1, 1}, {9, 2}, {3, 11}})
    EXPECT_EQ(values(resized(even, width, height)), std::vector<int>(size_t(width * height), 77));
  EXPECT_EQ(values(resized(even, 4, 3)), values(even));
}

}  // namespace
}  // namespace easydel::media

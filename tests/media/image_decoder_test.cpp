#include "easydel/media/image_decoder.h"

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/media/image_header.h"
#include "easydel/media/image_shape.h"
#include "support/data.h"

namespace easydel::media {
namespace {

namespace fs = std::filesystem;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A program that was built without the libraries has none of this.
class ImageDecoderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!image_decoder_is_there()) GTEST_SKIP() << "built without libjpeg, libpng and libwebp";
  }
  static std::string refused(std::string_view name) {
    const std::string file = test::read_file(test::test_data("images") / name);
    return test::refusal([&] { decode_image(bytes_of(file), std::string(name)); });
  }
};

void expect_equal(const Image& image, const Value& wanted, const std::string& what) {
  EXPECT_EQ(image.width, wanted.find("width")->as_int()) << what;
  EXPECT_EQ(image.height, wanted.find("height")->as_int()) << what;
  const std::string_view pixels(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  EXPECT_EQ(files::sha256(pixels), wanted.find("sha256")->scalar) << what;
}

// scripts/image_fixtures.py recorded what Pillow makes of these files; returns how many of them it reads.
int compare(const fs::path& folder, const Value& recorded) {
  int read = 0;
  for (const auto& [name, pillow] : recorded.entries) {
    if (pillow.find("refused") || name.ends_with("gif") || name.ends_with("tif") || name.ends_with("tiff") ||
        name.ends_with("bmp"))
      continue;
    const std::string file = test::read_file(folder / name);
    const Image image = decode_image(bytes_of(file), name);
    expect_equal(image, *pillow.find("rgb"), name);
    expect_equal(decode_upright(bytes_of(file), name), *pillow.find("upright"), name + " upright");
    for (const char* size : {"smaller", "larger"}) {
      const Value& wanted = *pillow.find(size);
      expect_equal(resized(image, *wanted.find("width")->as_int(), *wanted.find("height")->as_int()), wanted,
                   name + " " + size);
    }
    ++read;
  }
  return read;
}

TEST_F(ImageDecoderTest, MakesThePixelsOfPillow) {
  const Value recorded = parse_file(test::test_data("images/pillow.json"));
  EXPECT_EQ(compare(test::test_data("images"), *recorded.find("made")), 96);
}

TEST_F(ImageDecoderTest, MakesThePixelsOfPillowFromPhotographs) {
  const auto folder = test::shared_data("media/images");
  if (!folder) GTEST_SKIP() << "no shared data";
  const Value recorded = parse_file(test::test_data("images/pillow.json"));
  EXPECT_EQ(compare(*folder, *recorded.find("other")), 18);
}

TEST_F(ImageDecoderTest, RefusesWhatPillowRefuses) {
  int refused_by_pillow = 0;
  const Value recorded = parse_file(test::test_data("images/pillow.json"));
  for (const auto& [name, pillow] : recorded.find("made")->entries)
    if (pillow.find("refused")) {
      ++refused_by_pillow;
      EXPECT_NE(refused(name), "(nothing was refused)") << name;
    }
  EXPECT_EQ(refused_by_pillow, 7);
}

TEST_F(ImageDecoderTest, RefusesWhatItDoesNotReadByName) {
  const auto broken = [](const std::string& name, const std::string& what) {
    return name + ": the " + what + "\n    the file is cut off or broken: fetch it again, or drop the row";
  };
  EXPECT_EQ(refused("animated.gif"), "animated.gif: GIF images are not read\n    convert it to PNG, JPEG or WebP");
  EXPECT_EQ(refused("little.tiff"), "little.tiff: TIFF images are not read\n    convert it to PNG, JPEG or WebP");
  EXPECT_EQ(refused("bitmap.bmp"), "bitmap.bmp: BMP images are not read\n    convert it to PNG, JPEG or WebP");
  EXPECT_EQ(refused("cut.jpg"), broken("cut.jpg", "JPEG image cannot be decoded: it ends too early"));
  EXPECT_EQ(refused("cut.png"), broken("cut.png", "PNG image cannot be decoded: it ends too early"));
  EXPECT_EQ(refused("cut.webp"), broken("cut.webp", "WebP image cannot be decoded: libwebp does not take it"));
  EXPECT_EQ(refused("wrong_header.png"), broken("wrong_header.png", "PNG image cannot be decoded: IHDR: CRC error"));
  // Before anything is allocated: this one would need 10.8 GB.
  EXPECT_EQ(refused("huge.png"),
            "huge.png: the image has 60000 x 60000 pixels; 178956970 are read at most\n"
            "    make it smaller, or drop the row");
}

TEST_F(ImageDecoderTest, WritesPngWithoutLoss) {
  Image image{5, 3, {}};
  for (int i = 0; i < 45; ++i) image.pixels.push_back(uint8_t(i * 37));
  const std::string file = image_decoder().png(image);
  const Image again = decode_image(bytes_of(file), "again");
  EXPECT_EQ(again.width, 5);
  EXPECT_EQ(again.height, 3);
  EXPECT_EQ(again.pixels, image.pixels);
}

TEST(ImageDecoder, SaysWhatIsMissing) {
  EXPECT_EQ(test::refusal([] { load_image_decoder("/nowhere/libeasydel_media.so"); }),
            "/nowhere/libeasydel_media.so: is not there: this program was built without libjpeg, libpng and libwebp, "
            "which read images\n    install them (sudo apt-get install libjpeg-dev libpng-dev libwebp-dev) and "
            "build again");
}

}  // namespace
}  // namespace easydel::media

#include "easydel/media/image_header.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::media {
namespace {

std::string image(std::string_view name) { return test::read_file(test::test_data("images") / name); }

ImageHeader header_of(const std::string& file) {
  return read_image_header({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "image");
}
std::string refused(const std::string& file) {
  return test::refusal([&] { header_of(file); });
}

TEST(ImageHeaders, SayFormatAndSize) {
  for (const auto& [name, form] : {std::pair{"rgb.png", ImageForm::png},
                                   {"q50_s0.jpg", ImageForm::jpeg},
                                   {"lossy.webp", ImageForm::webp},
                                   {"lossless.webp", ImageForm::webp},
                                   {"lossy_alpha.webp", ImageForm::webp}}) {
    const ImageHeader header = header_of(image(name));
    EXPECT_EQ(header.form, form) << name;
    EXPECT_EQ(header.width, 29) << name;
    EXPECT_EQ(header.height, 19) << name;
    EXPECT_EQ(header.orientation, 1) << name;
  }
}

TEST(ImageHeaders, SayHowTheImageIsTurned) {
  for (int turn = 1; turn <= 8; ++turn)
    for (const char* ending : {".jpg", ".png", ".webp"}) {
      const ImageHeader header = header_of(image("turned_" + std::to_string(turn) + ending));
      EXPECT_EQ(header.orientation, turn) << ending;
      EXPECT_EQ(header.upright_width(), turn < 5 ? 29 : 19) << ending << turn;
      EXPECT_EQ(header.upright_height(), turn < 5 ? 19 : 29) << ending << turn;
    }
}

// Each beginning of a file is a header that is cut off, or the whole header.
TEST(ImageHeaders, MayEndAnywhere) {
  for (const char* name : {"turned_6.jpg", "turned_6.png", "turned_6.webp", "lossless.webp", "lossy.webp"}) {
    const std::string whole = image(name);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string part = whole.substr(0, size);
      try {
        EXPECT_EQ(header_of(part).width, 29) << name << " " << size;
      } catch (const UserError& error) {
        EXPECT_LT(size, 300u) << name << ": " << error.what();
      }
    }
  }
}

TEST(ImageHeaders, RefuseWhatIsNoImage) {
  const std::string broken = "\n    the file is cut off or broken: fetch it again, or drop the row";
  EXPECT_EQ(refused(""), "image: the image is empty\n    fetch it again, or drop the row");
  EXPECT_EQ(refused("hello"),
            "image: is not a PNG, JPEG or WebP image\n    convert it, or name another field with pixel_field");
  EXPECT_EQ(refused(image("rgb.png").substr(0, 20)), "image: the image ends in its header" + broken);
  EXPECT_EQ(refused(image("no_pixels.png")), "image: the image has 0 x 7 pixels\n    drop the row");
  EXPECT_EQ(refused("\xff\xd8\xff\xd9"), "image: the JPEG image does not say its size" + broken);
  EXPECT_EQ(refused("\xff\xd8\xff\xe1\x00"), "image: the image ends in its header" + broken);
  EXPECT_EQ(refused(std::string("\xff\xd8\xff\xe1\x00\x01\x00", 7)),
            "image: the JPEG image has a segment without a length" + broken);
  EXPECT_EQ(refused(std::string("\xff\xd8\xff\xe1\x00\x02\x11", 7)),
            "image: the JPEG image has bytes that belong to no segment" + broken);
  EXPECT_EQ(refused(std::string("\x89PNG\r\n\x1a\n\0\0\0\x0dXHDR", 16)),
            "image: the PNG image does not begin with its header" + broken);
  EXPECT_EQ(refused("RIFF1234WEBPJUNK"), "image: the WebP image does not begin with an image" + broken);
}

}  // namespace
}  // namespace easydel::media

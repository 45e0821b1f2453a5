// `easydel data` with rows of images.
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/media/image_decoder.h"
#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

class ImageRowCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (!media::image_decoder_is_there()) GTEST_SKIP() << "built without libjpeg, libpng and libwebp";
    fs::create_directory_symlink(test::test_data("models/stories260K-hf"), folder_ / "model");
    fs::create_directory_symlink(test::test_data("images"), folder_ / "images");
    test::write_file(folder_ / "rows.jsonl",
                     "{\"image\": \"images/turned_6.jpg\", \"caption\": \"One day, Max saw a hat.\"}\n"
                     "{\"image\": \"images/cut.png\", \"caption\": \"A cat.\"}\n"
                     "{\"image\": \"images/animated.gif\", \"caption\": \"A dog.\"}\n");
    write(", content_field: caption");
  }
  void write(const std::string& keys) {
    test::write_file(
        folder_ / "run.yaml",
        "model: {name_or_path: model}\nmixture: {informs: [{type: visual, data_files: rows.jsonl" + keys +
            "}]}\ntrainer: {save_directory: out, total_batch_size: 2, max_length: 32}\nactions: [train]\n");
  }
  test::Ran easydel(const std::vector<std::string>& words) const {
    return test::run_program(words, {.environment = {{"NO_COLOR", "1"}}, .folder = folder_.path()});
  }
  test::TemporaryFolder folder_;
};

TEST_F(ImageRowCommands, ShowSaysTheSizeAndPlaceOfEachImage) {
  const test::Ran ran = easydel({"data", "show", "run.yaml"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("saw a hat."), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\nimages/turned_6.jpg: 19 x 29 JPEG\n"), std::string::npos) << ran.out;
  write(", content_field: caption, image_size: [12, 20]");
  const test::Ran lines = easydel({"data", "show", "run.yaml", "--json"});
  EXPECT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(to_json(*parse_json(lines.out).find("images")),
            "[{\"image\": \"images/turned_6.jpg\", \"format\": \"JPEG\", \"width\": 19, \"height\": 29, "
            "\"resized_width\": 20, \"resized_height\": 12}]");
  const test::Ran page = easydel({"data", "show", "run.yaml", "--html"});
  EXPECT_NE(page.out.find("<img alt=\"\" src=\"data:image/jpeg;base64,/9j/"), std::string::npos);
}

TEST_F(ImageRowCommands, ShowTakesRowsWithoutATextToo) {
  write("");
  const test::Ran ran = easydel({"data", "show", "run.yaml", "--tokens"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "# rows.jsonl:1\nimages/turned_6.jpg: 19 x 29 JPEG\n");
}

TEST_F(ImageRowCommands, CheckFindsBrokenImages) {
  const test::Ran ran = easydel({"data", "check", "run.yaml"});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_EQ(ran.out,
            "2 of 3 rows have problems\n\n"
            "image 'images/cut.png': the PNG image cannot be decoded: it ends too early  (1 row)\n"
            "    the file is cut off or broken: fetch it again, or drop the row\n  rows.jsonl:2\n\n"
            "image 'images/animated.gif': GIF images are not read  (1 row)\n"
            "    convert it to PNG, JPEG or WebP\n  rows.jsonl:3\n");
}

TEST_F(ImageRowCommands, ValidateRefusesTheModelNotTheData) {
  const test::Ran ran = easydel({"validate", "run.yaml"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "model: training on images is not built yet\n    mixture.informs[0] has images; `easydel data show`, "
            "`check` and `stats` read its rows\n");
}

}  // namespace
}  // namespace easydel
